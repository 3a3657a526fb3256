import { decodeFrame } from '../../runtime/frames/frame-format.ts'
import type { FrameStream } from '../../runtime/frames/publisher.ts'
import type { DeliveryCall, Output } from '../../runtime/sink.ts'
import { delivered } from '../../runtime/sink.ts'
import type { CommitOutcome, KeyCommit, StateStore, StateValue } from '../../state/state-store.ts'
import { type Canary, lineageWith, storeWith } from './canary.ts'
import type { Owner } from './scheduler.ts'

const noFaults = { crash: 0, zombie: 0, failOver: 0, redelivery: 0 }
const restless = { any: true, crash: 0.01, zombie: 0.02, sleeps: 0.5, failOver: 0.01, redelivery: 0.02, coldStart: 0.2 }
const crashing = { any: true, crash: 0.02 }

/** Commits whatever position the key has meanwhile. */
async function commitAnyway(store: StateStore, write: KeyCommit, signal: AbortSignal): Promise<CommitOutcome> {
  const outcome = await store.commit(write, signal)
  if (outcome.status === 'committed' || outcome.found === undefined) return outcome
  const { position } = outcome.found
  const item = { ...write.item, position: Math.max(write.item.position, position + 1) }
  return commitAnyway(store, { ...write, readPosition: position, item }, signal)
}

const commitWithoutCondition: Canary = {
  breaks: 'a key is committed although another attempt committed it meanwhile',
  caughtBy: 'state-equals-oracle',
  faults: restless,
  store: (store) => storeWith(store, { commit: (write, signal) => commitAnyway(store, write, signal) }),
}

const conflictTakenAsDone: Canary = {
  breaks: 'a commit that lost is taken as done, and what lies beyond the winner is forgotten',
  caughtBy: 'state-equals-oracle',
  faults: { ...restless, crash: 0 },
  store: (store) =>
    storeWith(store, {
      commit: async (write, signal) => {
        await store.commit(write, signal)
        return { status: 'committed' }
      },
    }),
}

const progressWithoutCondition: Canary = {
  breaks: 'progress is written although another attempt wrote it meanwhile',
  caughtBy: 'applied-once',
  faults: { ...restless, sleeps: 1 },
  store: (store) =>
    storeWith(store, {
      async writeProgress(partition, readVersion, value, signal) {
        for (let version = readVersion; ; ) {
          if (await store.writeProgress(partition, version, value, signal)) return true
          version = (await store.readProgress(partition, signal))?.version ?? 0
        }
      },
    }),
}

const progressBeforeCommit: Canary = {
  breaks: 'progress is written before the keys are committed',
  caughtBy: 'state-equals-oracle',
  faults: crashing,
  store(store) {
    let waiting: [KeyCommit, AbortSignal][] = []
    return storeWith(store, {
      async commit(write, signal) {
        waiting.push([write, signal])
        return { status: 'committed' }
      },
      async writeProgress(...args) {
        const done = await store.writeProgress(...args)
        for (const [write, signal] of waiting) await store.commit(write, signal)
        waiting = []
        return done
      },
    })
  },
}

/** What was to be sent when, in one environment: nothing before its next commit is over. */
const afterCommits = new WeakMap<Owner, (() => Promise<unknown>)[]>()

const later = (owner: Owner, send: () => Promise<unknown>): void => {
  const waiting = afterCommits.get(owner) ?? []
  afterCommits.set(owner, waiting)
  waiting.push(send)
}

const publishAfterCommit: Canary = {
  breaks: 'outputs are sent after the keys are committed, just before progress',
  caughtBy: 'applied-once',
  faults: crashing,
  store: (store, { owner }) =>
    storeWith(store, {
      async writeProgress(...args) {
        for (const send of afterCommits.get(owner)?.splice(0) ?? []) await send()
        return store.writeProgress(...args)
      },
    }),
  sink: (sink, { owner }) => ({
    prepare: (output) => sink.prepare(output),
    async deliver(items, call) {
      later(owner, () => sink.deliver(items, call))
      return items.map(() => delivered)
    },
  }),
}

const publisherDoesNotWait: Canary = {
  breaks: 'the publisher does not wait for the acknowledgement of its frames',
  caughtBy: 'nothing-lost',
  faults: { ...crashing, refusedItem: 0.5 },
  publisher: (publisher) => ({
    async publish(frames, signal) {
      publisher.publish(frames, signal).catch(() => undefined)
    },
  }),
}

const framesDroppedWhole: Canary = {
  breaks: 'a frame that begins with a record that came before is dropped as a whole',
  caughtBy: 'nothing-lost',
  faults: { ...crashing, refusedItem: 0.2, lostAcknowledgement: 0.3 },
  frames: (() => {
    const begun = new Set<string>()
    return (stream: FrameStream): FrameStream => ({
      label: stream.label,
      async put(frames) {
        const answers = await stream.put(frames.filter((frame) => !begun.has(firstOf(frame))))
        const left = (answers ?? []).values()
        return frames.map((frame) => {
          if (begun.has(firstOf(frame))) return delivered
          begun.add(firstOf(frame))
          return left.next().value ?? delivered
        })
      },
    })
  })(),
}

function firstOf({ bytes, slot }: { readonly bytes: Uint8Array; readonly slot: number }): string {
  const frame = decodeFrame(bytes)
  if (frame.kind !== 'frame') return ''
  const { name, partition } = frame.upstream
  return `${name} ${partition} ${slot} ${frame.records[0]?.position.number}`
}

const cacheWithoutVersion: Canary = {
  breaks: 'the warm cache is believed whoever wrote since',
  caughtBy: 'one-identity-one-content',
  faults: { ...restless, crash: 0, coldStart: 0.3 },
  store(store) {
    // The runner is shown the version that it wrote last, so that it takes its cache for good.
    const mine = new Map<string, number>()
    const real = new Map<string, number>()
    return storeWith(store, {
      async readProgress(partition, signal) {
        const stored = await store.readProgress(partition, signal)
        if (stored === undefined) return undefined
        real.set(partition, stored.version)
        return { ...stored, version: mine.get(partition) ?? stored.version }
      },
      async writeProgress(partition, readVersion, value, signal) {
        const done = await store.writeProgress(partition, real.get(partition) ?? readVersion, value, signal)
        if (done) {
          mine.set(partition, readVersion + 1)
          real.set(partition, (real.get(partition) ?? readVersion) + 1)
        }
        return done
      },
    })
  },
}

const childBeforeParent: Canary = {
  breaks: 'a partition is begun before its parents are drained',
  caughtBy: 'one-identity-one-content',
  faults: { ...restless, reshard: 0.02, redelivery: 0.05 },
  lineage: (lineage) => lineageWith(lineage, { isDrained: async () => true }),
}

const childDoesNotMerge: Canary = {
  breaks: 'a partition does not go on from the progress of its parents',
  caughtBy: 'state-equals-oracle',
  faults: { any: true, reshard: 0.02 },
  lineage: (lineage) =>
    lineageWith(lineage, {
      async describe(partition, signal) {
        const description = await lineage.describe(partition, signal)
        return description && { ...description, parents: [] }
      },
    }),
}

const tornEntriesBelieved: Canary = {
  breaks: 'an entry that is newer than its key item is taken as it is',
  caughtBy: 'one-identity-one-content',
  faults: { ...restless, tornRead: 0.5, coldStart: 1 },
  store: (store) =>
    storeWith(store, {
      async readEntries(names, signal) {
        const items = await store.readEntries(names, signal)
        return items.map((item) => item && { ...item, position: 0 })
      },
      async listEntries(key, state, signal) {
        const items = await store.listEntries(key, state, signal)
        return new Map([...items].map(([name, item]) => [name, { ...item, position: 0 }]))
      },
    }),
}

const failuresNotCounted: Canary = {
  breaks: 'a record whose step throws is never given up',
  caughtBy: 'drains',
  runnerOptions: { attempts: 1_000_000 },
}

const mappingGivesUp: Canary = {
  breaks: 'the mapping gives a batch up after two retries',
  caughtBy: 'nothing-lost',
  faults: { any: true, crash: 0.06 },
  mapping: { maximumRetryAttempts: 2, bisectBatchOnFunctionError: false },
}

const errorsReportedAsSuccess: Canary = {
  breaks: 'an error that was caught is reported as success',
  caughtBy: 'nothing-lost',
  faults: { any: true, refusedItem: 0.3, throttle: 0.002 },
  runner: (runner) => ({
    start: () => runner.start(),
    settled: () => runner.settled(),
    async run(batch, invocation) {
      try {
        await runner.run(batch, invocation)
      } catch {
        // Nothing is said of it.
      }
      return { failures: [] }
    },
  }),
}

const everythingIsRead: Canary = {
  breaks: 'an environment reads every key that it has ever seen before it begins',
  caughtBy: 'nothing-restored',
  store(store) {
    const known = new Set<string>()
    return storeWith(store, {
      async readKeys(keys, signal) {
        for (const key of keys) known.add(key)
        const items = await store.readKeys([...known], signal)
        return new Map([...items].filter(([key]) => keys.includes(key)))
      },
    })
  },
}

const progressKeepsAll: Canary = {
  breaks: 'progress keeps what it was before, for ever',
  caughtBy: 'bounded-items-and-progress',
  store(store) {
    const wrapped = new Map<string, StateValue>()
    return storeWith(store, {
      async readProgress(partition, signal) {
        const stored = await store.readProgress(partition, signal)
        if (stored === undefined) return undefined
        wrapped.set(partition, stored.value)
        return { ...stored, value: (stored.value as { readonly present: StateValue }).present }
      },
      writeProgress: (partition, readVersion, present, signal) =>
        store.writeProgress(partition, readVersion, { present, before: wrapped.get(partition) ?? null }, signal),
    })
  },
}

const readBeforeEachWrite: Canary = {
  breaks: 'each key is read several times before it is written',
  caughtBy: 'units-within-budget',
  faults: { any: false, ...noFaults },
  needsDynamo: true,
  store: (store) =>
    storeWith(store, {
      async commit(write, signal) {
        for (let i = 0; i < 4; i++) await store.readKeys([write.key], signal)
        return store.commit(write, signal)
      },
    }),
}

const sinkStampsTheTime: Canary = {
  breaks: 'outputs carry the time at which they were made',
  caughtBy: 'one-identity-one-content',
  faults: restless,
  sink: (sink, { clock }) => ({
    prepare: (output: Output) =>
      sink.prepare({ ...output, value: { ...(output.value as object), madeAtMs: clock.nowMs() } }),
    deliver: (items: readonly unknown[], call: DeliveryCall) => sink.deliver(items, call),
  }),
}

const commitsCounted: Canary = {
  breaks: 'each commit adds a cent to the total of its key, so that it depends on the cuts',
  caughtBy: 'independent-of-cuts',
  store: (store) =>
    storeWith(store, {
      commit(write, signal) {
        const total = write.item.states['ledger.total']
        const states =
          typeof total === 'number' ? { ...write.item.states, 'ledger.total': total + 1 } : write.item.states
        return store.commit({ ...write, item: { ...write.item, states } }, signal)
      },
    }),
}

const outputsBackwards: Canary = {
  breaks: 'the outputs of a batch are delivered backwards',
  caughtBy: 'order-per-key',
  sink: (sink) => ({
    prepare: (output) => sink.prepare(output),
    async deliver(items, call) {
      return (await sink.deliver(items.toReversed(), call)).toReversed()
    },
  }),
}

const bugInTheRunner: Canary = {
  breaks: 'the runner rejects with an error that says nothing of a retry',
  caughtBy: 'no-surprises',
  runner: (runner) => {
    let runs = 0
    return {
      start: () => runner.start(),
      settled: () => runner.settled(),
      async run(batch, invocation) {
        if (++runs === 3) throw new TypeError('undefined is not a function')
        return runner.run(batch, invocation)
      },
    }
  },
}

/** By their stable names. */
export const canaries: { readonly [name: string]: Canary } = {
  'commit-without-condition': commitWithoutCondition,
  'conflict-taken-as-done': conflictTakenAsDone,
  'progress-without-condition': progressWithoutCondition,
  'progress-before-commit': progressBeforeCommit,
  'publish-after-commit': publishAfterCommit,
  'publisher-does-not-wait': publisherDoesNotWait,
  'frames-dropped-whole': framesDroppedWhole,
  'cache-without-version': cacheWithoutVersion,
  'child-before-parent': childBeforeParent,
  'child-does-not-merge': childDoesNotMerge,
  'torn-entries-believed': tornEntriesBelieved,
  'failures-not-counted': failuresNotCounted,
  'mapping-gives-up': mappingGivesUp,
  'errors-reported-as-success': errorsReportedAsSuccess,
  'everything-is-read': everythingIsRead,
  'progress-keeps-all': progressKeepsAll,
  'read-before-each-write': readBeforeEachWrite,
  'sink-stamps-the-time': sinkStampsTheTime,
  'commits-counted': commitsCounted,
  'outputs-backwards': outputsBackwards,
  'bug-in-the-runner': bugInTheRunner,
}
