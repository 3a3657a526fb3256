/**
 * Drafts against plain values in memory: whatever steps do, however batches are cut, and wherever a process dies, a step
 * sees what a program without tables would see. What was handed out is spoilt each time: it must change nothing.
 */
import fc from 'fast-check'
import { milliseconds } from '../../lib/core/duration.ts'
import { EntryNotLoaded, KeyDraft, linkStates } from '../../lib/state/key-draft.ts'
import type { StateStore, StateValue, TimerDomain } from '../../lib/state/state-store.ts'
import {
  aggregatingState,
  listState,
  mapState,
  packedState,
  reducingState,
  type StateDeclaration,
  type Ttl,
  valueState,
} from '../../lib/state/states.ts'
import { checkValue } from '../../lib/state/values.ts'
import { bothStores } from './both-stores.ts'
import {
  atMost,
  gathered,
  NaiveStates,
  type Operation,
  reduced,
  resultOf,
  type TimerOperation,
} from './naive-states.ts'

const key = 'h#1'
const signal = new AbortController().signal
const nowMs = Date.UTC(2026, 0, 1)
const retentionMs = 7 * 86_400_000
/** Names that every object has, that are empty, and that sort differently in UTF-16. */
const entryNames = ['', 'a', '__proto__', 'constructor', '\uffff', '\u{1f600}']

const ttl = fc.option(
  fc.record<Ttl>({
    by: fc.constantFrom('event-time', 'processing-time'),
    after: fc.integer({ min: 1, max: 40 }).map(milliseconds),
    refreshedOn: fc.constantFrom('write', 'read-and-write'),
  }),
  { nil: undefined },
)

const leaf: fc.Arbitrary<StateValue> = fc.oneof(
  fc.integer(),
  fc.constantFrom<StateValue>('', 'ä', null, true, 1n, -0, 0.5),
  fc.uint8Array({ maxLength: 3 }),
)
const value: fc.Arbitrary<StateValue> = fc.oneof(
  leaf,
  fc.array(leaf, { maxLength: 3 }),
  fc.dictionary(fc.constantFrom('b', 'a', 'constructor', '1'), fc.oneof(leaf, fc.array(leaf, { maxLength: 2 }))),
)

const calls: Record<StateDeclaration['kind'], readonly Operation['call'][]> = {
  value: ['get', 'set', 'set', 'clear'],
  list: ['get', 'add', 'add', 'set', 'clear'],
  map: ['get', 'has', 'set', 'set', 'clear', 'entries'],
  reducing: ['get', 'add', 'add', 'clear'],
  aggregating: ['get', 'add', 'add', 'clear'],
  packed: ['get', 'set', 'set', 'clear'],
}
const kinds = Object.keys(calls) as StateDeclaration['kind'][]

const operation: fc.Arbitrary<Operation> = fc.constantFrom(...kinds).chain((state) =>
  fc.constantFrom(...calls[state]).chain((call) =>
    fc.record({
      state: fc.constant(state),
      call: fc.constant(call),
      entry: fc.constantFrom(...entryNames),
      value: call === 'set' && state === 'list' ? fc.array(value, { maxLength: 5 }) : value,
    }),
  ),
)

const domains: readonly TimerDomain[] = ['event-time', 'processing-time']

const timerOperation: fc.Arbitrary<TimerOperation> = fc.record({
  state: fc.constant('timers'),
  call: fc.constantFrom('set', 'set', 'set', 'clear', 'get', 'next', 'next'),
  domain: fc.constantFrom(...domains),
  name: fc.constantFrom('a', 'b', 'constructor', 'op.idle'),
  timeMs: fc.integer({ min: -5, max: 5 }),
})

/** What the packed state holds: nothing that the table could, and nobody can change it. */
class Box {
  readonly #value: StateValue

  constructor(content: StateValue) {
    this.#value = checkValue(content, 'a box')
  }

  get content(): StateValue {
    return checkValue(this.#value, 'a box')
  }
}

interface Step {
  readonly eventTimeMs: number
  readonly arrivalTimeMs: number
  readonly operations: readonly (Operation | TimerOperation)[]
  readonly throws: boolean
  /** `commit` keeps the draft, as a warm container does; `reload` commits and reads again; `crash` reads without. */
  readonly afterwards: 'go on' | 'commit' | 'reload' | 'crash'
}

const step: fc.Arbitrary<Step> = fc.record({
  eventTimeMs: fc.integer({ min: -50, max: 100 }),
  arrivalTimeMs: fc.integer({ min: 0, max: 100 }),
  operations: fc.array(fc.oneof({ arbitrary: operation, weight: 3 }, timerOperation), { maxLength: 6 }),
  throws: fc.constantFrom(false, false, false, true),
  afterwards: fc.constantFrom('go on', 'go on', 'commit', 'reload', 'crash'),
})

type Views = Record<string, Record<string, (...args: unknown[]) => unknown>>

function perform(views: Views, { state, call, entry, value: written }: Operation): unknown {
  const view = views[state] as Views[string]
  if (state === 'packed') {
    const found = view[call]?.(...(call === 'set' ? [new Box(written)] : []))
    return found instanceof Box ? found.content : found
  }
  if (state !== 'map') return view[call]?.(...(call === 'set' || call === 'add' ? [written] : []))
  return view[call === 'clear' ? 'delete' : call]?.(entry, written)
}

function performTimer(draft: KeyDraft, { call, domain, name, timeMs }: TimerOperation): unknown {
  if (call === 'next') return draft.nextTimer(domain)
  if (call === 'get') return draft.timer(domain, name)
  return call === 'set' ? draft.setTimer(domain, name, timeMs) : draft.clearTimer(domain, name)
}

/** Tries to change a value that was handed out, everywhere inside. */
function spoil(found: unknown): void {
  if (typeof found !== 'object' || found === null) return
  for (const inner of Object.values(found)) if (!(found instanceof Uint8Array)) spoil(inner)
  for (const change of [
    () => (found as unknown[]).push('spoilt'),
    () => (found as Uint8Array).fill(66),
    () => Object.assign(found, { 0: 'spoilt', spoilt: true }),
  ]) {
    try {
      change()
    } catch {
      // It was frozen.
    }
  }
}

class World {
  readonly store: StateStore
  readonly #states: ReadonlyMap<string, StateDeclaration>
  readonly #views: Views
  #draft: KeyDraft

  constructor(store: StateStore, states: Record<string, StateDeclaration>) {
    this.store = store
    const storedName = (name: string): string => (name === 'value' ? 'constructor' : `op.${name}`)
    this.#states = new Map(Object.entries(states).map(([name, state]) => [storedName(name), state]))
    this.#draft = new KeyDraft(key, undefined, this.#states)
    this.#views = linkStates(states, storedName, () => this.#draft) as unknown as Views
  }

  /** What the step's calls return, and what it changed. The runtime's way: what is missing is loaded, and it runs again. */
  async #attempt({ eventTimeMs, arrivalTimeMs, operations }: Step): Promise<[seen: unknown[], changes: string]> {
    for (;;) {
      this.#draft.begin({ eventTimeMs, arrivalTimeMs })
      try {
        const seen = operations.map((each) => {
          if (each.state === 'timers') return performTimer(this.#draft, each as TimerOperation)
          const given = checkValue((each as Operation).value, 'a value')
          const found = perform(this.#views, { ...(each as Operation), value: given })
          const copy = typeof found === 'object' ? structuredClone(found) : found
          spoil(found)
          spoil(given)
          return copy
        })
        return [seen, this.#draft.changesText()]
      } catch (thrown) {
        if (!(thrown instanceof EntryNotLoaded)) throw thrown
        this.#draft.rollback()
        await this.#loadMissing(thrown)
      }
    }
  }

  async #loadMissing({ state, entry }: EntryNotLoaded): Promise<void> {
    if (entry === undefined) {
      this.#draft.loadAllEntries(state, await this.store.listEntries(key, state, signal))
      return
    }
    expect(this.#draft.hasEntry(state, entry)).toBe(false)
    const [item] = await this.store.readEntries([{ key, state, entry }], signal)
    this.#draft.loadEntry(state, entry, item)
    expect(this.#draft.hasEntry(state, entry)).toBe(true)
  }

  async run(step: Step): Promise<unknown[]> {
    const [seen, changes] = await this.#attempt(step)
    this.#draft.rollback()
    expect(await this.#attempt(step)).toEqual([seen, changes])
    if (step.throws) this.#draft.rollback()
    else this.#draft.accept(this.#draft.position + 1)
    return seen
  }

  /** `remainingMs` is how long something in the key is visible still: so long its item may not be taken, nor an entry alone. */
  async commit(remainingMs: number): Promise<void> {
    if (!this.#draft.isChanged) return
    const commit = this.#draft.commit(nowMs, retentionMs)
    const untilSeconds = commit.item.expiresAtSeconds ?? Number.POSITIVE_INFINITY
    expect(Number.isFinite(untilSeconds)).toBe(Number.isFinite(remainingMs))
    expect(untilSeconds).toBeGreaterThanOrEqual((nowMs + remainingMs + retentionMs + 86_400_000) / 1_000)
    for (const { expiresAtSeconds = Number.POSITIVE_INFINITY, value: written } of commit.entries) {
      if (written !== undefined) expect(untilSeconds).toBeGreaterThanOrEqual(expiresAtSeconds)
    }
    const outcome = await this.store.commit(commit, signal)
    expect(outcome).toEqual({ status: 'committed' })
    this.#draft.committed()
    expect([this.#draft.isChanged, this.#draft.readPosition]).toEqual([false, this.#draft.position])
  }

  /** By domain: when the first timer is due, as the item says. */
  get storedNextMs(): readonly (number | undefined)[] {
    return domains.map((domain) => this.#draft.storedNextMs(domain))
  }

  async reload(): Promise<void> {
    const item = (await this.store.readKeys([key], signal)).get(key)
    const { position } = this.#draft
    this.#draft = new KeyDraft(key, item, this.#states)
    expect(this.#draft.position).toBeLessThanOrEqual(position)
  }
}

const names = kinds.map((kind) => [kind, kind] as const)

async function holds(store: StateStore, ttls: readonly (Ttl | undefined)[], steps: readonly Step[]): Promise<void> {
  const [ofValue, ofList, ofMap, ofReducing, ofAggregating, ofPacked] = ttls.map((each) => (each ? { ttl: each } : {}))
  const world = new World(store, {
    value: valueState(ofValue),
    list: listState({ atMost, ...ofList }),
    map: mapState(ofMap),
    reducing: reducingState(reduced, ofReducing),
    aggregating: aggregatingState({ init: () => [], add: gathered, result: resultOf }, ofAggregating),
    packed: packedState<Box>({
      encode: ({ content }) => [content],
      decode: (stored) => new Box((stored as readonly StateValue[])[0] as StateValue),
      ...ofPacked,
    }),
  })
  let naive = new NaiveStates(new Map(names.map(([name, kind], i) => [name, { kind, ttl: ttls[i] }])))
  let committed = naive.copy()
  for (const step of steps) {
    const before = naive.copy()
    naive.begin(step.eventTimeMs, step.arrivalTimeMs)
    const expected = step.operations.map((each) =>
      each.state === 'timers'
        ? naive.runTimer(each as TimerOperation)
        : naive.run({ ...(each as Operation), value: checkValue((each as Operation).value, 'a value') }),
    )
    expect(await world.run(step)).toEqual(expected)
    if (step.throws) naive = before
    if (step.afterwards === 'commit' || step.afterwards === 'reload') {
      await world.commit(naive.longestRemainingMs())
      committed = naive.copy()
    }
    if (step.afterwards === 'crash') naive = committed.copy()
    if (step.afterwards === 'reload' || step.afterwards === 'crash') await world.reload()
    expect(world.storedNextMs).toEqual(domains.map((domain) => committed.nextTimer(domain)?.timeMs))
  }
}

describe.each(bothStores)('drafts over the %s store', (name, make) => {
  test('show steps what plain values in memory would show them', async () => {
    const ttls = fc.array(ttl, { minLength: kinds.length, maxLength: kinds.length })
    const property = fc.asyncProperty(ttls, fc.array(step, { maxLength: 25 }), async (eachTtl, steps) =>
      holds(make(), eachTtl, steps),
    )
    await fc.assert(property, { numRuns: name === 'memory' ? 1_000 : 100 })
  }, 120_000)
})

test('the order of records that write nothing makes no difference to what is visible after them', () => {
  const times = fc.array(fc.record({ eventTimeMs: fc.nat(60), arrivalTimeMs: fc.nat(60) }), {
    minLength: 1,
    maxLength: 8,
  })
  const orders = times.chain((each) =>
    fc.tuple(fc.constant(each), fc.shuffledSubarray(each, { minLength: each.length })),
  )
  fc.assert(
    fc.property(ttl, orders, (each, [one, other]) => {
      const seenAfter = (records: typeof one): unknown => {
        const states = {
          seen: valueState<number>({
            ttl: { by: 'event-time', ...each, after: milliseconds(30), refreshedOn: 'write' },
          }),
        }
        const draft = new KeyDraft(key, undefined, new Map(Object.entries(states)))
        const views = linkStates(
          states,
          (name) => name,
          () => draft,
        )
        draft.begin({ eventTimeMs: 20, arrivalTimeMs: 20 })
        views.seen.set(1)
        draft.accept(1)
        for (const record of records) {
          draft.begin(record)
          draft.accept(draft.position + 1)
        }
        return views.seen.get()
      }
      const largestMs = Math.max(
        ...one.map((record) => (each?.by === 'processing-time' ? record.arrivalTimeMs : record.eventTimeMs)),
      )
      expect([seenAfter(one), seenAfter(other)]).toEqual(largestMs >= 50 ? [undefined, undefined] : [1, 1])
    }),
  )
})
