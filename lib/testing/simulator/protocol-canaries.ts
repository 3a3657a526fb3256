/**
 * Canaries of the rules of docs/guarantees.md that the others leave out, by the number of the invariant that each breaks. The
 * last ones are for runs with time.
 */
import { rest } from '../../runtime/batch.ts'
import { firstPosition } from '../../runtime/frames/position.ts'
import { UpstreamMemories } from '../../runtime/frames/upstream-memory.ts'
import { delivered } from '../../runtime/sink.ts'
import type { StateValue } from '../../state/state-store.ts'
import { type Canary, storeWith } from './canary.ts'
import { publisherWith, storeWithProgress } from './rewrites.ts'
import { names } from './workload.ts'

const restless = { any: true, crash: 0.01, zombie: 0.02, sleeps: 0.5, failOver: 0.01, redelivery: 0.02, coldStart: 0.2 }

/** Invariant 4. */
const passesAFailingRecord: Canary = {
  breaks: 'what lies behind a record that fails is stepped and committed before it',
  caughtBy: 'applied-once',
  faults: { any: true },
  runner: (runner) => ({
    start: () => runner.start(),
    settled: () => runner.settled(),
    async run(batch, invocation) {
      const outcome = await runner.run(batch, invocation)
      const [failure] = outcome.failures
      const [part] = batch
      if (failure === undefined || part === undefined) return outcome
      const behind = rest(part.records, failure.index + 1)
      if (behind.length > 0) await runner.run([{ ...part, records: behind }], invocation).catch(() => undefined)
      return outcome
    },
  }),
}

/** Invariant 5. */
const refusedDeadLettersForgotten: Canary = {
  breaks: 'a dead letter that is refused counts as sent',
  caughtBy: 'nothing-lost',
  faults: { any: true, refusedItem: 0.8 },
  sink: (sink, { sink: name }) => ({
    prepare: (output) => sink.prepare(output),
    async deliver(items, call) {
      const outcomes = await sink.deliver(items, call)
      return name === 'dead-letters' ? items.map(() => delivered) : outcomes
    },
  }),
}

/** Invariant 6. */
const memoriesForgotten: Canary = {
  breaks: 'progress forgets what was read of each upstream',
  caughtBy: 'applied-once',
  faults: restless,
  store: (store) =>
    storeWithProgress(store, names, { read: (progress) => ({ ...progress, memories: new UpstreamMemories() }) }),
}

/** Invariants 6 and 11. */
const operatorStatesForgotten: Canary = {
  breaks: 'progress forgets the operator states of its slots',
  caughtBy: 'applied-once',
  store: (store) =>
    storeWithProgress(store, names, { read: (progress) => ({ ...progress, operatorStates: new Map() }) }),
}

/** What is noted of suspects before they are stepped. */
const suspectForgotten: Canary = {
  breaks: 'progress forgets which numbers were begun and never ended',
  caughtBy: 'drains',
  faults: { any: true },
  store: (store) => storeWithProgress(store, names, { read: (progress) => ({ ...progress, suspect: undefined }) }),
}

/** Invariant 7. */
const claimsEverything: Canary = {
  breaks: 'a frame claims all positions before it, whoever computed them',
  caughtBy: 'nothing-lost',
  faults: { any: true, overtaking: 0.9 },
  publisher: (publisher) =>
    publisherWith(publisher, (frame) => {
      const last = frame.claims.at(-1)?.last
      return last === undefined ? frame : { ...frame, claims: [{ previous: firstPosition, last }] }
    }),
}

/** What a batched read has left out. */
const unprocessedTakenAsAbsent: Canary = {
  breaks: 'keys that a batched read left out are taken for new',
  caughtBy: 'applied-once',
  store: (store) =>
    storeWith(store, {
      async readKeys(keys, signal) {
        const items = await store.readKeys(keys, signal)
        return keys.length < 2 ? items : new Map([...items].filter(([key]) => key !== keys.at(-1)))
      },
    }),
}

/** When a value was touched last. */
const touchesForgotten: Canary = {
  breaks: 'an entry outlives its TTL, as nobody knows when it was touched',
  caughtBy: 'applied-once',
  // Runs in which TTL takes something keep states that fade.
  faults: { any: true, ttl: 0.5, coldStart: 1 },
  store: (store) =>
    storeWith(store, {
      async readEntries(entries, signal) {
        const items = await store.readEntries(entries, signal)
        return items.map((item) => item && { ...item, own: undefined })
      },
    }),
}

/** States that this version does not declare. */
const undeclaredDropped: Canary = {
  breaks: 'a version of the topology drops the states that it does not know',
  caughtBy: 'what-a-redeploy-adds',
  faults: { any: true, redeploy: 0.004 },
  store: (store, { version }) =>
    storeWith(store, {
      commit(write, signal) {
        if (version % 2 === 1) return store.commit(write, signal)
        const { 'ledger.visits': _, ...states } = write.item.states
        return store.commit({ ...write, item: { ...write.item, states } }, signal)
      },
    }),
}

const redrivesForgotten: Canary = {
  breaks: 'a key forgets which redriven records it took',
  caughtBy: 'applied-once',
  hasTime: true,
  faults: { any: true, redrive: 0.03 },
  store: (store) =>
    storeWith(store, {
      commit(write, signal) {
        const { redrives: _, ...own } = (write.item.own ?? {}) as { readonly [name: string]: StateValue }
        return store.commit({ ...write, item: { ...write.item, own } }, signal)
      },
    }),
}

const skewNotHeeded: Canary = {
  breaks: 'a record whose clock is days ahead is as much in time as others',
  caughtBy: 'as-the-source-says',
  hasTime: true,
  faults: { any: false },
  publisher: (publisher) =>
    publisherWith(publisher, (frame) => ({
      ...frame,
      records: frame.records.map((record) =>
        record.ownMarkMs === Number.POSITIVE_INFINITY ? { ...record, ownMarkMs: frame.markMs } : record,
      ),
    })),
}

/** By their stable names. */
export const protocolCanaries: { readonly [name: string]: Canary } = {
  'passes-a-failing-record': passesAFailingRecord,
  'refused-dead-letters-forgotten': refusedDeadLettersForgotten,
  'memories-forgotten': memoriesForgotten,
  'operator-states-forgotten': operatorStatesForgotten,
  'suspect-forgotten': suspectForgotten,
  'claims-everything': claimsEverything,
  'unprocessed-taken-as-absent': unprocessedTakenAsAbsent,
  'touches-forgotten': touchesForgotten,
  'undeclared-dropped': undeclaredDropped,
  'redrives-forgotten': redrivesForgotten,
  'skew-not-heeded': skewNotHeeded,
}
