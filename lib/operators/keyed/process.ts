/** Any pure step over the states of a key. */
import { TerminalError } from '../../core/errors.ts'
import type { RecordInfo } from '../../core/record.ts'
import { linkStates } from '../../state/key-draft.ts'
import type { Key } from '../../state/key-encoding.ts'
import type { OperatorStateDeclaration, StateDeclaration, StatesOf } from '../../state/states.ts'
import { type Emit, refusePromise } from '../operator.ts'
import { checkSides, checkStates, checkTimers, type StateDeclarations } from './declarations.ts'
import type { KeyedLink, KeyedLinkContext, KeyedOperator, PrefetchedEntry } from './keyed-operator.ts'
import { handOn, type Outputs } from './outputs.ts'
import type { SideDeclarations, SidesOf } from './side-output.ts'
import { linkTimers, type TimerDeclarations, type TimersOf } from './timers.ts'

/** What a timer's function is given beside the time. */
export interface TimerContext<K, D extends StateDeclarations, S, M = Record<never, never>> {
  /** The key, as `keyBy` gave it. */
  readonly key: K
  /** The key's states, by the names that the operator declares. Valid until the step has returned its last output. */
  readonly state: StatesOf<D>
  readonly sides: SidesOf<S>
  /** The key's timers, by the names that the operator declares. */
  readonly timers: TimersOf<M>
}

/** What a step is given beside the value. */
export interface StepContext<K, D extends StateDeclarations, S, M = Record<never, never>>
  extends TimerContext<K, D, S, M> {
  /** The record that the value comes from. Its coordinates are those of the source; `record.key` is the key's text. */
  readonly record: RecordInfo
}

/** Per map state, the entries that a step will read. */
export type Prefetched<D> = {
  readonly [N in keyof D as D[N] extends { readonly kind: 'map' } ? N : never]?: Iterable<string> & object
}

/** What a `process` operator is made of. */
export interface Process<T, O, K, D extends StateDeclarations, S, M = Record<never, never>> {
  /** What it keeps of each key, by name. The names own the state, so they stay. */
  readonly state: D
  /** Streams that it writes to beside its results. @default none */
  readonly sides?: S
  /**
   * Names entries of map states that the step will read, so that they are loaded with the batch. An entry that is not
   * named is loaded when the step asks for it, and the step then runs again from its beginning.
   * @default none
   */
  readonly prefetch?: (value: T, record: RecordInfo) => Prefetched<D>
  /**
   * Gives any number of outputs. It is pure: the same value, record and state give the same outputs and changes, and it
   * may run more than once. It reads and writes only the state of its key.
   */
  readonly step: (value: T, context: StepContext<K, D, S, M>) => Outputs<O>
  /** Timers of each key, by name. The names own what is set, so they stay. @default none */
  readonly timers?: M
  /**
   * What a timer does, by its name: it is as pure as a step, and gives any number of outputs, whose event time is the time
   * that the timer was set to. Its outputs are of the type of the step's; where the step has none, of its own.
   */
  readonly onTimer?: {
    readonly [N in keyof M]: TimerStep<NoInfer<O>, K, D, S, M>
  } & InferredTimerSteps<O, K, D, S, M>
}

/** What a timer does. */
type TimerStep<O, K, D extends StateDeclarations, S, M> = (
  timeMs: number,
  context: TimerContext<K, D, S, M>,
) => Outputs<O>

/** The compiler infers outputs by an index signature, and not by the names of timers, which it infers itself. */
interface InferredTimerSteps<O, K, D extends StateDeclarations, S, M> {
  readonly [name: string]: TimerStep<O, K, D, S, M>
}

/** Makes the operator. Throws a {@link ConfigurationError} where a state, a side output or a timer cannot be one. */
export function process<
  T,
  O,
  K extends Key,
  D extends StateDeclarations,
  S extends SideDeclarations,
  M extends TimerDeclarations = Record<never, never>,
>(name: string, declared: Process<T, O, K, D, S, M>): KeyedOperator<T, O> {
  const label = `process "${name}"`
  const sides: SideDeclarations = declared.sides ?? {}
  checkStates(label, declared.state, declared.timers ?? {})
  checkSides(label, sides)
  checkTimers(label, declared.timers ?? {}, declared.onTimer ?? {})
  const storedNameOf = (member: string): string => `${name}.${member}`
  const { ofKey, ofSlot } = partition(declared.state)
  const { prefetch } = declared
  return {
    kind: 'process',
    name,
    states: stored(ofKey, storedNameOf),
    operatorStates: stored(ofSlot, storedNameOf),
    sides: Object.keys(sides),
    emits: 'each',
    ...(prefetch && {
      prefetch: (value: T, record: RecordInfo) => entriesOf(label, name, declared.state, prefetch(value, record)),
    }),
    link(next, side, context) {
      const views = linkViews(ofKey, ofSlot, storedNameOf, context) as StatesOf<D>
      const timers = linkTimers(label, declared.timers ?? {}, storedNameOf, () => context.draft()) as TimersOf<M>
      return linkProcess(label, storedNameOf, declared, { views, timers, next, side, context })
    },
  }
}

function linkProcess<T, O, K extends Key, D extends StateDeclarations, S extends SideDeclarations, M>(
  label: string,
  storedNameOf: (member: string) => string,
  { step, sides = {} as S, onTimer }: Process<T, O, K, D, S, M>,
  linked: {
    readonly views: StatesOf<D>
    readonly timers: TimersOf<M>
    readonly next: Emit<O>
    readonly side: (name: string) => Emit<unknown>
    readonly context: KeyedLinkContext
  },
): KeyedLink<T> {
  const { views: state, timers, next, side, context } = linked
  const waiting = new WaitingSides(label, Object.keys(sides), side)
  const handlers = new Map(
    Object.entries(onTimer ?? {}).map(([name, handler]) => [storedNameOf(name), handler]),
  ) as Map<string, (timeMs: number, context: TimerContext<K, D, S, M>) => Outputs<O>>
  const contextOf = (): TimerContext<K, D, S, M> => {
    return { key: context.key() as K, state, sides: waiting.sides as SidesOf<S>, timers }
  }
  return {
    record(value, record) {
      waiting.clear()
      const key = context.key() as K
      handOn(label, step(value, { key, record, state, sides: waiting.sides as SidesOf<S>, timers }), next, record)
      waiting.handOn(record)
    },
    fire(_domain, name, timeMs) {
      const handler = handlers.get(name)
      // A timer of an earlier release, which this one does not know any more.
      if (handler === undefined) return
      waiting.clear()
      const record = context.result(timeMs)
      handOn(label, handler(timeMs, contextOf()), next, record)
      waiting.handOn(record)
    },
  }
}

/**
 * What a step emitted to its sides while it ran. It is handed on afterwards, so that no `try` of the step can swallow
 * what a later step throws.
 */
class WaitingSides {
  readonly sides: SidesOf<SideDeclarations>
  readonly #waiting: { readonly next: Emit<unknown>; readonly value: unknown }[] = []

  constructor(operator: string, names: readonly string[], side: (name: string) => Emit<unknown>) {
    const entries = names.map((name) => {
      const next = side(name)
      const emit = (value: unknown): void => {
        refusePromise(operator, value)
        this.#waiting.push({ next, value })
      }
      return [name, { emit }] as const
    })
    this.sides = Object.fromEntries(entries)
  }

  /** Forgets what a step left that threw. */
  clear(): void {
    this.#waiting.length = 0
  }

  handOn(record: RecordInfo): void {
    for (const { next, value } of this.#waiting) next(value, record)
  }
}

type Named<S> = readonly (readonly [string, S])[]

/** Parts what is kept per key from what is kept per slot. */
function partition(declared: StateDeclarations): {
  readonly ofKey: Named<StateDeclaration>
  readonly ofSlot: Named<OperatorStateDeclaration>
} {
  const ofKey: [string, StateDeclaration][] = []
  const ofSlot: [string, OperatorStateDeclaration][] = []
  for (const [name, state] of Object.entries(declared)) {
    if (state.kind === 'operator') ofSlot.push([name, state])
    else ofKey.push([name, state])
  }
  return { ofKey, ofSlot }
}

const stored = <S>(states: Named<S>, storedNameOf: (name: string) => string): ReadonlyMap<string, S> =>
  new Map(states.map(([name, state]) => [storedNameOf(name), state]))

function linkViews(
  ofKey: Named<StateDeclaration>,
  ofSlot: Named<OperatorStateDeclaration>,
  storedNameOf: (name: string) => string,
  context: KeyedLinkContext,
): object {
  const slotViews = ofSlot.map(([name]) => {
    const storedName = storedNameOf(name)
    return [name, { get: () => context.operatorState(storedName) }] as const
  })
  const keyViews = linkStates(Object.fromEntries(ofKey), storedNameOf, () => context.draft())
  return { ...keyViews, ...Object.fromEntries(slotViews) }
}

/** The entries that `prefetch` names, by stored names. */
function* entriesOf(
  label: string,
  operator: string,
  declared: StateDeclarations,
  prefetched: { readonly [name: string]: Iterable<string> | undefined },
): Iterable<PrefetchedEntry> {
  refusePromise(label, prefetched)
  for (const [name, entries = []] of Object.entries(prefetched)) {
    if (!Object.hasOwn(declared, name) || declared[name]?.kind !== 'map') {
      refusePrefetch(`prefetch of ${label} names "${name}", which is no map state of it`)
    }
    // Text is a list of its letters, which nobody means.
    if (typeof entries === 'string') {
      refusePrefetch(`prefetch of ${label} gave text for "${name}": give a list of names, such as [day]`)
    }
    for (const entry of entries) {
      if (typeof entry !== 'string') {
        refusePrefetch(`prefetch of ${label} names an entry of "${name}" by a ${typeof entry}: names are text`)
      }
      yield { state: `${operator}.${name}`, entry }
    }
  }
}

function refusePrefetch(message: string): never {
  throw new TerminalError(message, { code: 'prefetch-refused' })
}
