/**
 * Very many windows end at one hour boundary. Execution environments with little memory close them, one invocation after the
 * other, each in a process of its own; some are killed in the middle. The tables and the sink are in this process.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { describeError } from '../../lib/core/errors.ts'
import { MemoryStateStore } from '../../lib/state/memory-store.ts'
import { seeded } from '../state/zipf.ts'
import type { FromWorker, SentFrame, ToWorker } from './mass-close-words.ts'
import { type Trip, WindowStages } from './stages.ts'

export interface MassCloseOptions {
  readonly windows: number
  /** The memory setting of the function, in MiB. */
  readonly memoryMiB: number
  readonly invocationMs: number
  /** Environments that are killed in the middle. */
  readonly kills: number
}

export interface MassClose {
  readonly invocations: number
  readonly killed: number
  /** Processes that ended by themselves, as when their memory is full. */
  readonly crashed: number
  readonly pastDeadline: number
  readonly mostPastMs: number
  /** The largest resident set of a process that was not killed, with all that it has loaded. */
  readonly largestRssMiB: number
  readonly seconds: number
  readonly missed: number
  /** Windows with more than one result, what came twice under one identity counted once. */
  readonly doubled: number
  /** Results that were published more than once under one identity, as by one that was killed before it committed. */
  readonly repeated: number
}

const hourMs = 3_600_000
const startMs = Date.UTC(2026, 0, 1, 10)
const { signal } = new AbortController()
const mostInvocations = 1_000

interface Item {
  readonly identity: string
  readonly value: { readonly key: string }
}

/** What the sink was given. */
class Results {
  readonly byIdentity = new Map<string, string>()
  repeated = 0

  take(items: readonly Item[]): void {
    for (const { identity, value } of items) {
      if (this.byIdentity.has(identity)) this.repeated++
      this.byIdentity.set(identity, value.key)
    }
  }
}

export async function measureMassClose({
  windows,
  memoryMiB,
  invocationMs,
  kills,
}: MassCloseOptions): Promise<MassClose> {
  const store = new MemoryStateStore({ stage: 'by-key', clock: systemClock })
  const frames = await open(store, windows)
  const results = new Results()
  const random = seeded(windows)
  // By commits of all invocations, of which there are as many as windows at least: so how fast the machine is, and how many invocations
  // it takes therefore, decides nothing. One falls in each equal share.
  const killAt = Array.from({ length: kills }, (_, i) => 1 + Math.floor(((i + random()) * windows) / kills))
  const commits = { begun: 0 }
  const tally = { invocations: 0, killed: 0, crashed: 0, pastDeadline: 0, mostPastMs: 0, rssBytes: 0 }
  const beginMs = systemClock.nowMs()
  for (let left = frames.length; left > 0 && tally.invocations < mostInvocations; ) {
    tally.invocations++
    const killAtCommit = killAt[tally.killed]
    const word = await invocation({ store, results, frames, memoryMiB, invocationMs, commits, killAtCommit })
    if (word === 'killed') tally.killed++
    else if (word === 'crashed') tally.crashed++
    else {
      left = word.notDone
      tally.rssBytes = Math.max(tally.rssBytes, word.rssBytes)
      tally.mostPastMs = Math.max(tally.mostPastMs, word.pastDeadlineMs)
      if (word.pastDeadlineMs > 0) tally.pastDeadline++
    }
    if (tally.crashed > 3) break
  }
  const keys = new Set(results.byIdentity.values())
  return {
    invocations: tally.invocations,
    killed: tally.killed,
    crashed: tally.crashed,
    pastDeadline: tally.pastDeadline,
    mostPastMs: tally.mostPastMs,
    largestRssMiB: tally.rssBytes / 2 ** 20,
    seconds: (systemClock.nowMs() - beginMs) / 1_000,
    missed: windows - keys.size,
    doubled: results.byIdentity.size - keys.size,
    repeated: results.repeated,
  }
}

/** Opens a window for each key; the answer is the frame at which all of them end. */
async function open(store: MemoryStateStore, windows: number): Promise<readonly SentFrame[]> {
  const stages = new WindowStages('hourly', { store })
  await stages.run(await stages.announce())
  const tripOf = (index: number): Trip => ({ key: `key-${index}`, atMs: startMs + (index % hourMs), cents: index })
  for (let from = 0; from < windows; from += 1_000) {
    await stages.send(Array.from({ length: Math.min(1_000, windows - from) }, (_, i) => tripOf(from + i)))
  }
  const { records } = await stages.announce({ idleMs: () => hourMs })
  return Array.from({ length: records.length }, (_, i) => {
    const record = records.at(i)
    if (record === undefined) throw new Error('the announcer’s frames are not there')
    return { position: record.position, payload: record.payload as Uint8Array, arrivalTimeMs: record.arrivalTimeMs }
  })
}

interface Invocation {
  readonly store: MemoryStateStore
  readonly results: Results
  readonly frames: readonly SentFrame[]
  readonly memoryMiB: number
  readonly invocationMs: number
  /** Of all invocations so far. */
  readonly commits: { begun: number }
  /** Which of them ends its process; undefined lets it live. */
  readonly killAtCommit: number | undefined
}

type Ended = Extract<FromWorker, { kind: 'done' }> | 'killed' | 'crashed'

/** The heap that the start script of Lambda's Node.js runtime gives a function of so much memory: 90 % of it, the young generation 5 %. */
const heapOf = (memoryMiB: number): string[] => [
  `--max-old-space-size=${Math.floor(memoryMiB * 0.9)}`,
  `--max-semi-space-size=${Math.floor(memoryMiB * 0.05)}`,
]

/** One invocation in an environment of its own. */
async function invocation(options: Invocation): Promise<Ended> {
  const { frames, memoryMiB, invocationMs } = options
  const worker = fork(join(import.meta.dirname, 'mass-close-worker.ts'), {
    execArgv: heapOf(memoryMiB),
    serialization: 'advanced',
  })
  try {
    const ended = outcomeOf(worker, options)
    tell(worker, { kind: 'invoke', frames, invocationMs })
    return await ended
  } finally {
    worker.kill('SIGKILL')
  }
}

const tell = (worker: ChildProcess, word: ToWorker): void => {
  // One that was killed hears nothing any more.
  if (worker.connected) worker.send(word, () => undefined)
}

function outcomeOf(worker: ChildProcess, { store, results, commits, killAtCommit }: Invocation): Promise<Ended> {
  let isKilled = false
  const serve = async (method: string, args: readonly unknown[]): Promise<unknown> => {
    if (method === 'deliver') return results.take(args[0] as readonly Item[])
    const call = Reflect.get(store, method) as (...given: readonly unknown[]) => Promise<unknown>
    return call.apply(store, [...args, signal])
  }
  return new Promise((resolve) => {
    worker.on('exit', () => resolve(isKilled ? 'killed' : 'crashed'))
    worker.on('message', async (word: FromWorker) => {
      // What it asked for or answered before it was killed, and was not begun, never happens.
      if (isKilled) return
      if (word.kind === 'done') return resolve(word)
      if (word.method === 'commit' && ++commits.begun >= (killAtCommit ?? Number.POSITIVE_INFINITY)) {
        isKilled = true
        worker.kill('SIGKILL')
        return
      }
      const { id } = word
      try {
        tell(worker, { kind: 'answer', id, value: await serve(word.method, word.args) })
      } catch (error) {
        tell(worker, { kind: 'answer', id, error: describeError(error).message })
      }
    })
  })
}
