/**
 * An execution environment of the stage, in a process of its own with little memory, bundled as a function is: the production store
 * over HTTP, and a sink in its parent. It runs one invocation, and says how much memory it took.
 */
import { createDynamoDBClient } from '../../lib/aws/clients/dynamodb.ts'
import { DynamoDBStateStore } from '../../lib/aws/state-table/store.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { outputIdentity, SourceRecord } from '../../lib/core/record.ts'
import { delivered, type Sink } from '../../lib/runtime/sink.ts'
import type { StateStore } from '../../lib/state/state-store.ts'
import type { FromWorker, Invoke, SentResult, ToWorker } from './mass-close-words.ts'
import { feedingStage, partition, WindowStages, windowsStage } from './stages.ts'

const waiting = new Map<number, () => void>()
let deliveries = 0
let commits = 0
let rssBytes = 0

const say = (word: FromWorker): void => void process.send?.(word)

// Of this moment: the largest one that Linux tells includes that of the process which forked.
function lookAtMemory(): void {
  rssBytes = Math.max(rssBytes, process.memoryUsage.rss())
}

/** The table of a stage, which has its name; each commit counts, and the one that is to be the last is never made. */
function storeOf(stage: string, { endpoint, killAtCommit }: Invoke): StateStore {
  const client = createDynamoDBClient({ endpoint })
  const store = new DynamoDBStateStore({ client, tableName: stage, stage, clock: systemClock })
  const commit = store.commit.bind(store)
  store.commit = (...args) => {
    lookAtMemory()
    if (++commits === killAtCommit) process.kill(process.pid, 'SIGKILL')
    return commit(...args)
  }
  return store
}

const sink = (): Sink<unknown, SentResult> => ({
  prepare: ({ value, record, index }) => ({
    identity: outputIdentity(record, index),
    key: (value as { readonly key: string }).key,
  }),
  deliver: async (results) => {
    lookAtMemory()
    const id = ++deliveries
    await new Promise<void>((resolve) => {
      waiting.set(id, resolve)
      say({ kind: 'deliver', id, results })
    })
    return results.map(() => delivered)
  },
})

async function invoke(word: Invoke): Promise<void> {
  const deadlineMs = systemClock.nowMs() + word.invocationMs
  const [store, feedingStore] = [storeOf(windowsStage, word), storeOf(feedingStage, word)]
  const stages = new WindowStages('hourly', { store, feedingStore, sink })
  const records = word.frames.map((frame) => new SourceRecord({ source: windowsStage, partition, key: '', ...frame }))
  const left = await stages.invoke({ partition, records }, deadlineMs)
  const pastDeadlineMs = Math.max(0, systemClock.nowMs() - deadlineMs)
  lookAtMemory()
  say({ kind: 'done', notDone: left?.records.length ?? 0, pastDeadlineMs, commits, rssBytes })
}

process.on('message', (word: ToWorker) => {
  if (word.kind === 'invoke') {
    void invoke(word)
    return
  }
  waiting.get(word.id)?.()
  waiting.delete(word.id)
})
