/**
 * Very many windows end at one hour boundary. Execution environments with little memory close them, one invocation after the
 * other, each in a process of its own that is bundled as a function is and reaches its tables over HTTP; some are killed in the
 * middle. The embedded DynamoDB and the sink are in this process.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DynamoDBStateStore } from '../../lib/aws/state-table/store.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { bundleHandler } from '../../lib/local/run/handler-bundle.ts'
import { localIdentity } from '../../lib/local/run/streams.ts'
import { type DynamoService, startDynamoService } from '../../lib/local/services/dynamodb.ts'
import type { StageBindings } from '../../lib/plan/stage-bindings.ts'
import { stateTable } from '../../lib/testing/state-table.ts'
import { clientOver } from '../state/tables.ts'
import { seeded } from '../state/zipf.ts'
import type { Done, FromWorker, Invoke, SentFrame, SentResult, ToWorker } from './mass-close-words.ts'
import { feedingStage, type Trip, WindowStages, windowsStage } from './stages.ts'

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
const mostInvocations = 1_000
const mostCrashes = 3

/** What the sink was given. */
class Results {
  readonly byIdentity = new Map<string, string>()
  repeated = 0

  take(results: readonly SentResult[]): void {
    for (const { identity, key } of results) {
      if (this.byIdentity.has(identity)) this.repeated++
      this.byIdentity.set(identity, key)
    }
  }
}

export async function measureMassClose(options: MassCloseOptions): Promise<MassClose> {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const service = await startDynamoService()
  try {
    const entry = join(import.meta.dirname, 'mass-close-worker.ts')
    const bundle = await bundleHandler({ entry, directory, bindings: workerBindings })
    return await closeAll(options, { service, bundle, frames: await open(service, options.windows) })
  } finally {
    await service.close()
    rmSync(directory, { recursive: true })
  }
}

/** The worker opens its ports by itself, and none that a switch could leave out. */
const workerBindings: StageBindings = {
  formatVersion: 1,
  topology: 'windows-app',
  sources: [],
  sinks: [],
  deadLetters: { kind: 'kinesis', streamName: 'failed' },
}

interface World {
  readonly service: DynamoService
  readonly bundle: string
  readonly frames: readonly SentFrame[]
}

async function closeAll(
  { windows, memoryMiB, invocationMs, kills }: MassCloseOptions,
  world: World,
): Promise<MassClose> {
  const results = new Results()
  const random = seeded(windows)
  // By commits of all invocations, of which there are as many as windows at least: so how fast the machine is, and how many invocations
  // it takes therefore, decides nothing. One falls in each equal share.
  const killAt = Array.from({ length: kills }, (_, i) => 1 + Math.floor(((i + random()) * windows) / kills))
  const tally = { invocations: 0, killed: 0, crashed: 0, pastDeadline: 0, mostPastMs: 0, rssBytes: 0, commits: 0 }
  const beginMs = systemClock.nowMs()
  for (let left = world.frames.length; left > 0 && tally.invocations < mostInvocations; ) {
    tally.invocations++
    const killAtNext = killAt[tally.killed]
    const killAtCommit = killAtNext === undefined ? undefined : Math.max(1, killAtNext - tally.commits)
    const ended = await invocation({ world, results, memoryMiB, invocationMs, killAtCommit })
    if (ended === 'killed') {
      tally.killed++
      tally.commits += killAtCommit ?? 0
    } else if (ended === 'crashed') {
      tally.crashed++
    } else {
      left = ended.notDone
      tally.commits += ended.commits
      tally.rssBytes = Math.max(tally.rssBytes, ended.rssBytes)
      tally.mostPastMs = Math.max(tally.mostPastMs, ended.pastDeadlineMs)
      if (ended.pastDeadlineMs > 0) tally.pastDeadline++
    }
    if (tally.crashed > mostCrashes) break
  }
  const { rssBytes, commits: _, ...counts } = tally
  const keys = new Set(results.byIdentity.values())
  return {
    ...counts,
    largestRssMiB: rssBytes / 2 ** 20,
    seconds: (systemClock.nowMs() - beginMs) / 1_000,
    missed: windows - keys.size,
    doubled: results.byIdentity.size - keys.size,
    repeated: results.repeated,
  }
}

/** Opens a window for each key; the answer is the frame at which all of them end. */
async function open({ model }: DynamoService, windows: number): Promise<readonly SentFrame[]> {
  const storeOf = (stage: string) => {
    model.call('CreateTable', { TableName: stage, ...stateTable })
    return new DynamoDBStateStore({ client: clientOver(model), tableName: stage, stage, clock: systemClock })
  }
  const stages = new WindowStages('hourly', { store: storeOf(windowsStage), feedingStore: storeOf(feedingStage) })
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

interface Invocation extends Pick<Invoke, 'invocationMs' | 'killAtCommit'> {
  readonly world: World
  readonly results: Results
  readonly memoryMiB: number
}

type Ended = Done | 'killed' | 'crashed'

/** The heap that the start script of Lambda's Node.js runtime gives a function of so much memory: 90 % of it, the young generation 5 %. */
const heapOf = (memoryMiB: number): string[] => [
  `--max-old-space-size=${Math.floor(memoryMiB * 0.9)}`,
  `--max-semi-space-size=${Math.floor(memoryMiB * 0.05)}`,
]

/** One invocation in an environment of its own. */
async function invocation({ world, results, memoryMiB, invocationMs, killAtCommit }: Invocation): Promise<Ended> {
  const { service, bundle, frames } = world
  const { region, accessKeyId, secretAccessKey } = localIdentity
  const worker = fork(bundle, {
    execArgv: heapOf(memoryMiB),
    serialization: 'advanced',
    env: { AWS_REGION: region, AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
  })
  try {
    const ended = outcomeOf(worker, results)
    tell(worker, { kind: 'invoke', endpoint: service.url, frames, invocationMs, killAtCommit })
    return await ended
  } finally {
    worker.kill('SIGKILL')
  }
}

const tell = (worker: ChildProcess, word: ToWorker): void => {
  // One that was killed hears nothing any more.
  if (worker.connected) worker.send(word, () => undefined)
}

function outcomeOf(worker: ChildProcess, results: Results): Promise<Ended> {
  return new Promise((resolve) => {
    // It kills itself, and what else ends it is no kill: a full heap ends in SIGABRT.
    worker.on('exit', (_, killedBy) => resolve(killedBy === 'SIGKILL' ? 'killed' : 'crashed'))
    worker.on('message', (word: FromWorker) => {
      if (word.kind === 'done') return resolve(word)
      results.take(word.results)
      tell(worker, { kind: 'taken', id: word.id })
    })
  })
}
