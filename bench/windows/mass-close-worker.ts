/**
 * An execution environment of the stage, in a process of its own with little memory: the tables and the sink are its parent's. It
 * runs one invocation, and says how much memory it took.
 */
import { systemClock } from '../../lib/aws/system-clock.ts'
import { outputIdentity, SourceRecord } from '../../lib/core/record.ts'
import { delivered, type Sink } from '../../lib/runtime/sink.ts'
import type { StateStore } from '../../lib/state/state-store.ts'
import type { FromWorker, SentFrame, ToWorker } from './mass-close-words.ts'
import { WindowStages } from './stages.ts'

const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
let calls = 0
let rssBytes = 0

const say = (word: FromWorker): void => void process.send?.(word)

function ask(method: string, args: readonly unknown[]): Promise<unknown> {
  // Of this moment: the largest one that Linux tells includes that of the process which forked.
  rssBytes = Math.max(rssBytes, process.memoryUsage.rss())
  const id = ++calls
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject })
    say({ kind: 'call', id, method, args })
  })
}

/** Every method of the store goes to the parent; as with a client of AWS, nothing begins once its signal has aborted. */
const store = new Proxy({} as StateStore, {
  get:
    (_, method: string) =>
    async (...args: readonly unknown[]) => {
      const signal = args.at(-1)
      if (signal instanceof AbortSignal) signal.throwIfAborted()
      return ask(method, signal instanceof AbortSignal ? args.slice(0, -1) : args)
    },
})

const sink = (): Sink => ({
  prepare: ({ value, record, index }) => ({ identity: outputIdentity(record, index), value }),
  deliver: async (items) => {
    await ask('deliver', [items])
    return items.map(() => delivered)
  },
})

async function invoke(frames: readonly SentFrame[], invocationMs: number): Promise<void> {
  const deadlineMs = systemClock.nowMs() + invocationMs
  const stages = new WindowStages('hourly', { store, sink })
  const records = frames.map(
    (frame) => new SourceRecord({ source: 'by-key', partition: 'shardId-000000000000', key: '', ...frame }),
  )
  const left = await stages.invoke({ partition: 'shardId-000000000000', records }, deadlineMs)
  const pastDeadlineMs = Math.max(0, systemClock.nowMs() - deadlineMs)
  say({
    kind: 'done',
    notDone: left?.records.length ?? 0,
    pastDeadlineMs,
    rssBytes,
  })
}

process.on('message', (word: ToWorker) => {
  if (word.kind === 'invoke') {
    void invoke(word.frames, word.invocationMs)
    return
  }
  const call = waiting.get(word.id)
  waiting.delete(word.id)
  if (word.error === undefined) call?.resolve(word.value)
  else call?.reject(new Error(word.error))
})
