/**
 * The views that steps get of the states that a topology declares. They are made once per operator and belong to no key:
 * each call goes to the draft of the key at hand, and allocates nothing of its own.
 */
import type {
  AggregatingState,
  AggregatingView,
  ListView,
  MapView,
  ReducingState,
  ReducingView,
  StateDeclaration,
  StatesOf,
  ValueView,
} from './states.ts'
import { CheckedCopy } from './values.ts'

/** What views ask of the key at hand, by stored names. */
export interface StateAccess {
  /** How errors name the key. */
  readonly path: string
  /** Undefined where there is nothing visible. What is returned cannot be changed. */
  read(state: string): unknown
  /** Throws a TerminalError for what the table could not return unchanged; what a packed state takes is not looked at. */
  write(state: string, value: unknown): void
  /** Adds an element to a list, of which the last `atMost` are kept. */
  append(state: string, element: unknown, atMost: number): void
  remove(state: string): void
  readEntry(state: string, entry: string): unknown
  writeEntry(state: string, entry: string, value: unknown): void
  removeEntry(state: string, entry: string): void
  readEntries(state: string): readonly (readonly [entry: string, value: unknown])[]
}

type Current = () => StateAccess

/**
 * The views of an operator's states by name. `current` is the draft of the key whose step runs.
 *
 * @example
 * const views = linkStates({ count: valueState<number>() }, (name) => `visits.${name}`, () => draft)
 * views.count.set((views.count.get() ?? 0) + 1)
 */
export function linkStates<D extends Readonly<Record<string, StateDeclaration>>>(
  states: D,
  storedNameOf: (name: string) => string,
  current: Current,
): StatesOf<D> {
  const views = Object.entries(states).map(([name, state]) => [name, viewOf(state, storedNameOf(name), current)])
  return Object.fromEntries(views) as StatesOf<D>
}

function viewOf(declaration: StateDeclaration, state: string, current: Current): unknown {
  switch (declaration.kind) {
    case 'value':
    case 'packed':
      return valueView(state, current)
    case 'list':
      return listView(state, declaration.atMost, current)
    case 'map':
      return mapView(state, current)
    case 'reducing':
      return reducingView(declaration, state, current)
    case 'aggregating':
      return aggregatingView(declaration, state, current)
  }
}

const valueView = (state: string, current: Current): ValueView<unknown> => ({
  get: () => current().read(state),
  set: (value) => current().write(state, value),
  clear: () => current().remove(state),
})

const empty: readonly never[] = Object.freeze([])

const listView = (state: string, atMost: number, current: Current): ListView<unknown> => ({
  get: () => (current().read(state) as readonly unknown[] | undefined) ?? empty,
  add: (value) => current().append(state, value, atMost),
  set: (list) => current().write(state, list.slice(-atMost)),
  clear: () => current().remove(state),
})

const mapView = (state: string, current: Current): MapView<unknown> => ({
  get: (entry) => current().readEntry(state, entry),
  has: (entry) => current().readEntry(state, entry) !== undefined,
  set: (entry, value) => current().writeEntry(state, entry, value),
  delete: (entry) => current().removeEntry(state, entry),
  entries: () => current().readEntries(state),
})

const reducingView = (declaration: ReducingState<unknown>, state: string, current: Current): ReducingView<unknown> => ({
  get: () => current().read(state),
  add(value) {
    const draft = current()
    const before = draft.read(state)
    draft.write(state, before === undefined ? value : declaration.reduce(before, value))
  },
  clear: () => current().remove(state),
})

const aggregatingView = (
  declaration: AggregatingState<unknown, unknown, unknown>,
  state: string,
  current: Current,
): AggregatingView<unknown, unknown> => ({
  get() {
    const accumulator = current().read(state)
    return accumulator === undefined ? undefined : declaration.result(accumulator)
  },
  add(value) {
    const draft = current()
    const before = draft.read(state)
    // A first accumulator cannot be changed either: `add` that tries to fails on its first value.
    const accumulator =
      before ??
      new CheckedCopy(`${draft.path}: what init() of the state ${state} returned`, 'frozen').of(declaration.init())
    draft.write(state, declaration.add(accumulator, value))
  },
  clear: () => current().remove(state),
})
