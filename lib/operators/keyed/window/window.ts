/** Gathers the values of a key by windows. */
import { ConfigurationError } from '../../../core/errors.ts'
import type { Key } from '../../../state/key-encoding.ts'
import type { StateValue } from '../../../state/state-store.ts'
import { packedState, type StateDeclaration } from '../../../state/states.ts'
import type { CountWindows } from '../../../time/windows/count-window.ts'
import type { SessionWindows } from '../../../time/windows/session.ts'
import type { SlicedWindows } from '../../../time/windows/window.ts'
import { type Aggregator, type Aggregators, type CustomAggregation, custom } from '../../aggregators/aggregator.ts'
import { kindsOf } from '../../aggregators/kinds.ts'
import { named } from '../../aggregators/named.ts'
import type { Emit } from '../../operator.ts'
import type { KeyedOperator, WindowTraits } from '../keyed-operator.ts'
import { countWindows } from './count-windows.ts'
import { sessionWindows } from './session-windows.ts'
import { slicedWindows } from './sliced-windows.ts'
import type { WindowDeclaration, WindowKind } from './window-parts.ts'
import type { WindowEmission, WindowResult } from './window-result.ts'

/** Windows of event time. */
export type TimeWindows = SlicedWindows | SessionWindows
/** All kinds of windows: what `keyed.window` takes. */
export type Windows = TimeWindows | CountWindows

/** The name of the side output of late records. */
export const lateSide = 'late'

/** What is gathered: aggregators by name, one aggregator, or the functions of one of your own. */
export type WindowAggregation<T> = Aggregators<T> | Aggregator<T, unknown> | CustomAggregation<T, unknown, unknown>

/** Makes the operator. Throws a {@link ConfigurationError} where an option makes no sense. */
export function windowed<T>(
  name: string,
  windows: Windows,
  aggregation: WindowAggregation<T>,
  emit: WindowEmission,
): KeyedOperator<T, WindowResult<Key, unknown>> {
  const label = `window "${name}"`
  checkWindows(label, windows)
  checkEmission(label, windows, emit)
  const kind = kindOf(windows, { name, emit, aggregator: aggregatorOf(label, aggregation) })
  const state = packedState<unknown>({ encode: kind.encode, decode: kind.decode })
  return {
    kind: 'window',
    name,
    states: new Map([[name, state as StateDeclaration]]),
    operatorStates: new Map(),
    sides: windows.kind === 'count' ? [] : [lateSide],
    emits: 'each',
    window: { ...traitsOf(windows, emit), aggregators: kindsOf(aggregation) },
    link(results, side, context) {
      const late = (windows.kind === 'count' ? () => undefined : side(lateSide)) as Emit<T>
      const linked = kind.link({ context, results, late })
      return {
        record: linked.record,
        fire: (_domain, _name, timeMs) => linked.fire?.(timeMs, false),
        skip: (_domain, _name, timeMs) => linked.fire?.(timeMs, true),
        drop: () => context.draft().drop(name),
      }
    },
  }
}

function kindOf<T>(windows: Windows, declaration: WindowDeclaration<T>): WindowKind<T, unknown> {
  if (windows.kind === 'session') return sessionWindows(windows, declaration) as WindowKind<T, unknown>
  if (windows.kind === 'count') return countWindows(windows, declaration) as WindowKind<T, unknown>
  return slicedWindows(windows, declaration) as WindowKind<T, unknown>
}

/** For how long after its end a window may have another result. */
function traitsOf(windows: Windows, emit: WindowEmission): Omit<WindowTraits, 'aggregators'> {
  const { label, graceMs } = windows
  const settlingMs = windows.kind === 'session' ? windows.gapMs - 1 + graceMs : graceMs
  return {
    label,
    graceMs,
    hasLate: windows.kind !== 'count',
    emit,
    heldBackMs: emit === 'final' ? settlingMs : 0,
    trailsMs: emit === 'final' ? 0 : settlingMs,
    openIn: (stored) => openIn(windows.kind, stored),
  }
}

/** By what each kind stores: sessions as a list, slices under their name, of count windows the one that fills. */
function openIn(kind: Windows['kind'], stored: StateValue): number {
  if (kind === 'count') return 1
  if (kind === 'session') return (stored as readonly StateValue[]).length
  return (stored as { readonly slices: readonly StateValue[] }).slices.length
}

function aggregatorOf<T>(label: string, aggregation: WindowAggregation<T>): Aggregator<T, unknown> {
  const { init, encode, merge } = (aggregation ?? {}) as Partial<Aggregator<T, unknown>>
  if (typeof init !== 'function') return named(label, (aggregation ?? {}) as Aggregators<T>)
  if (typeof merge !== 'function') {
    throw new ConfigurationError(
      `${label} has an aggregator without \`merge\`: windows are put together of parts, so give { init, add, merge, result }.`,
    )
  }
  return typeof encode === 'function'
    ? (aggregation as Aggregator<T, unknown>)
    : custom(aggregation as CustomAggregation<T, unknown, unknown>)
}

const kinds: readonly unknown[] = ['tumbling', 'hopping', 'sliding', 'calendar-days', 'session', 'count']

function checkWindows(label: string, windows: Windows): void {
  if (kinds.includes((windows as Windows | undefined)?.kind)) return
  throw new ConfigurationError(
    `${label} has no windows: make them with tumbling(), hopping(), sliding(), session(), calendarDays() or countWindow().`,
  )
}

function checkEmission(label: string, { kind }: Windows, emit: WindowEmission): void {
  if (emit !== 'on-close' && emit !== 'final' && emit !== 'on-update') {
    throw new ConfigurationError(
      `${label} says emit: ${JSON.stringify(emit)}: say 'on-close' for a result at the end and one for each late record, 'final' for one once the grace has passed, or 'on-update' for one after each record.`,
    )
  }
  if (kind === 'count' && emit === 'on-update') {
    throw new ConfigurationError(
      `${label} says emit: 'on-update', but the bounds of a count window are known only once it is full: say 'on-close', or use aggregate() for a running result.`,
    )
  }
}
