/**
 * One run of `millrace dev`.
 *
 * Invariants:
 * 1. Streams and tables belong to the run, not to the application on them: a reload replaces the application and keeps them and the
 *    checkpoints.
 * 2. The application in use is stopped only when its successor has been compiled, loaded and planned.
 * 3. A record that the old application had in flight is finished by it before the new one begins.
 * 4. With `once` the end of the input is the end of event time, as that of a file is: what waits for a time is due then. Without, time goes
 *    on with the clock.
 */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError } from '../../lib/core/errors.ts'
import type { SourceRecord } from '../../lib/emulator/event-source-mapping/index.ts'
import type { Closing } from '../../lib/local/closing.ts'
import { LatenessReport } from '../../lib/local/display/lateness-report.ts'
import { grouped, shardViews } from '../../lib/local/display/run-display.ts'
import { takeLock } from '../../lib/local/files/directory-lock.ts'
import { deadLetterOutput, type LocalApplication, startLocalApplication } from '../../lib/local/run/application.ts'
import { endpointsAt, type LocalEndpoints } from '../../lib/local/run/endpoints.ts'
import { localKinesisClient } from '../../lib/local/run/streams.ts'
import { checkTables, localDynamoDBClient, type SinkTables } from '../../lib/local/run/tables.ts'
import { plan } from '../../lib/plan/plan.ts'
import { DevDeadLetters } from './dev-dead-letters.ts'
import { type DevDisplay, type DevView, rowCount } from './dev-display.ts'
import { type DevInput, InputProgress, sendInput } from './dev-input.ts'
import { DevOutputs } from './dev-outputs.ts'
import { DevTables } from './dev-tables.ts'
import { serveRun } from './local-run.ts'
import { RunHistory } from './run-history.ts'
import { loadUserCode, type UserCode } from './user-code.ts'
import { WatchedFiles } from './watched-files.ts'
import { counted } from './words.ts'

export interface DevOptions {
  readonly topologyFile: string
  readonly handlerFile: string
  readonly code: UserCode
  readonly directory: string
  readonly inputs: readonly DevInput[]
  readonly shards: number
  readonly port: number
  readonly endpoint: string | undefined
  /** The sinks that are tables. */
  readonly tables: SinkTables
  readonly fresh: boolean
  readonly once: boolean
}

export interface DevRun {
  /** Looks after everything once: saves, progress, troubles. Rejects where the run cannot go on. */
  tick(): Promise<void>
  readonly view: () => DevView
  /** All input is sent and processed, and its outputs are shown. */
  readonly isSettled: boolean
  /** Lines were sent, and each of them became a dead letter. */
  readonly hasFailed: boolean
}

const pollMs = 50
const retryBrokenMs = 1_000

/** Starts everything; the closing ends it. */
export async function startDevRun(
  options: DevOptions,
  display: DevDisplay,
  closing: Closing,
  signal: AbortSignal,
): Promise<DevRun> {
  const { directory, topologyFile, handlerFile, code } = options
  const { endpoint, tables: bound, fresh } = options
  const facts = { topologyFile, handlerFile, tables: bound, ...(endpoint === undefined ? {} : { endpoint }) }
  const history = await RunHistory.open({ directory, facts, fresh })
  history.check(plan(code.topology))
  await mkdir(directory, { recursive: true })
  const endpoints = await endpointsFor(options, closing)
  const client = localKinesisClient(endpoints.kinesis)
  closing.defer(() => client.destroy())
  const dynamodb = localDynamoDBClient(endpoints.dynamodb)
  closing.defer(() => dynamodb.destroy())
  const tables = new DevTables(bound, {
    client: dynamodb,
    clock: systemClock,
    onChange: (sink, view) => display.changed(sink, view),
  })
  const deadLetters = new DevDeadLetters(systemClock.nowMs())
  const onRecords = (output: string, records: readonly SourceRecord[]) => {
    if (output === deadLetterOutput) deadLetters.take(records)
    display.received(output, records)
  }
  const outputs = new DevOutputs({ client, onRecords })
  closing.defer(() => outputs.stop())
  const run = new Run({ options, display, client, endpoints, history, deadLetters, outputs, tables, signal })
  closing.defer(() => run.stop())
  await run.start(code)
  return run
}

/** Where the services of the run are. State is dropped only once they can start: a port that is taken must not cost it. */
async function endpointsFor(options: DevOptions, closing: Closing): Promise<LocalEndpoints> {
  const { directory, endpoint, port, fresh } = options
  const drop = async () => {
    if (fresh) await dropState(directory)
  }
  if (endpoint === undefined) return serveRun(directory, port, closing, drop)
  await drop()
  return endpointsAt(endpoint)
}

/** Everything but the lock that is held meanwhile. */
async function dropState(directory: string): Promise<void> {
  await mkdir(join(directory, 'kinesis'), { recursive: true })
  const unlock = [await takeLock(join(directory, 'application.lock'))]
  try {
    unlock.push(await takeLock(join(directory, 'kinesis', 'kinesis.lock')))
    for (const name of await readdir(directory)) {
      if (name !== 'application.lock') await rm(join(directory, name), { recursive: true })
    }
  } finally {
    for (const release of unlock) await release()
  }
}

interface RunParts {
  readonly options: DevOptions
  readonly display: DevDisplay
  readonly client: KinesisClient
  readonly endpoints: LocalEndpoints
  readonly history: RunHistory
  readonly deadLetters: DevDeadLetters
  readonly outputs: DevOutputs
  readonly tables: DevTables
  readonly signal: AbortSignal
}

class Run implements DevRun {
  readonly #parts: RunParts
  readonly #files = new WatchedFiles()
  readonly #lateness = new LatenessReport()
  readonly #sent = new Map<string, number>()
  /** Why an input is not sent now, by file. */
  readonly #blocked = new Map<string, string>()
  #app: LocalApplication | undefined
  #lastProblem: string | undefined
  #lastTroubles = ''
  #triedAtMs = 0
  #sendFailure: unknown
  /** When the last line was acknowledged; undefined while input is sent. */
  #sentAtMs: number | undefined
  #processedAtMs: number | undefined
  /** The application that knows of the end of the input, and when nothing waited for it any more. */
  #ended: { readonly app: LocalApplication; readonly atMs: number | undefined } | undefined
  isSettled = false

  constructor(parts: RunParts) {
    this.#parts = parts
  }

  async start(code: UserCode): Promise<void> {
    const { display, history, outputs, tables, signal } = this.#parts
    await this.#files.follow(code.files, code.compiledAtMs)
    const app = await this.#replace(code)
    // What earlier runs put out is read first, so that only what is new is shown.
    const readSinceMs = systemClock.nowMs()
    while (!signal.aborted && !outputs.haveRead(readSinceMs)) await systemClock.sleep(pollMs, signal)
    outputs.expectNew()
    await tables.look('now')
    await app.run()
    display.say(
      `${code.topology.name} runs, with Kinesis at ${app.endpoint}. Saves of its code are picked up; Ctrl-C ends. Log: ${app.logFile}`,
    )
    const names = [...app.tables.keys()]
    if (names.length > 0) display.say(`Tables at ${app.endpoints.dynamodb} (DynamoDB): ${names.join(', ')}.`)
    for (const line of history.lines) display.say(line)
    await this.#sendInputs(app)
  }

  /** Begins to send; the ticks look how far it is. */
  async #sendInputs(app: LocalApplication): Promise<void> {
    const { options, display, client, signal } = this.#parts
    const progress = await InputProgress.open(join(options.directory, 'input.json'))
    for (const { source } of options.inputs) this.#sent.set(source, 0)
    const sending = options.inputs.map((input) => {
      const { streamName } = app.streamOf(input.source)
      const onSent = (lines: number) => void this.#sent.set(input.source, (this.#sent.get(input.source) ?? 0) + lines)
      const onBlocked = (problem: string | undefined) => {
        if (problem === undefined) this.#blocked.delete(input.file)
        else this.#blocked.set(input.file, `blocked: ${problem}`)
      }
      return sendInput({ input, client, streamName, progress, signal, say: display.say, onSent, onBlocked })
    })
    Promise.all(sending).then(
      () => {
        if (options.inputs.length > 0) this.#sentAtMs = systemClock.nowMs()
      },
      (error) => {
        this.#sendFailure = error
      },
    )
  }

  async tick(): Promise<void> {
    if (this.#sendFailure !== undefined) throw this.#sendFailure
    const nowMs = systemClock.nowMs()
    const isBroken = this.#lastProblem !== undefined
    const isDue = isBroken && nowMs - this.#triedAtMs >= retryBrokenMs
    if ((await this.#files.haveChanged()) || isDue) await this.#reload()
    await this.#parts.tables.look()
    this.#tellTroubles()
    await this.#tellSettled()
  }

  readonly view = (): DevView => ({
    topology: this.#parts.options.code.topology.name,
    sent: this.#sent,
    counts: this.#parts.outputs.counts,
    tables: this.#parts.tables.views,
    troubles: this.#troubles(),
  })

  async stop(): Promise<void> {
    await this.#app?.stop()
  }

  async #reload(): Promise<void> {
    const { options, display } = this.#parts
    const { topologyFile, handlerFile } = options
    this.#triedAtMs = systemClock.nowMs()
    try {
      const code = await loadUserCode(topologyFile, handlerFile)
      this.#checkSuccessor(code)
      await this.#files.follow(code.files, code.compiledAtMs)
      const app = await this.#replace(code)
      await app.run()
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error
      if (error.message !== this.#lastProblem) {
        const running = this.#app ? 'the version before keeps running' : 'nothing runs'
        display.say(`Not reloaded, ${running}: ${error.message}`)
      }
      this.#lastProblem = error.message
      return
    }
    this.#lastProblem = undefined
    display.say('Reloaded.')
  }

  #checkSuccessor({ topology }: UserCode): void {
    const { options } = this.#parts
    const { name } = options.code.topology
    if (topology.name !== name) {
      throw new ConfigurationError(
        `the topology is now named "${topology.name}", not "${name}": start \`millrace dev\` again.`,
      )
    }
    const planned = plan(topology)
    this.#parts.history.check(planned)
    checkTables(planned, options.tables)
    const sources = planned.graph.sources.map((source) => source.name)
    const lost = options.inputs.find(({ source }) => !sources.includes(source))
    if (lost) throw new ConfigurationError(`the topology has lost source "${lost.source}", which gets ${lost.file}.`)
  }

  /** Puts an application in the place of the one in use, on the same streams. */
  async #replace({ topology }: UserCode): Promise<LocalApplication> {
    const { options, endpoints, history, outputs } = this.#parts
    await this.#app?.stop()
    this.#app = undefined
    const app = await startLocalApplication({
      topology,
      entry: options.handlerFile,
      directory: options.directory,
      endpoint: endpoints,
      shards: options.shards,
      tables: options.tables,
      input: options.once ? 'bounded' : 'live',
      onMetrics: (stage, _workerId, metrics) => this.#lateness.take(stage, metrics),
      // A developer waits for each record.
      mapping: { maximumBatchingWindowInSeconds: 0, emulation: { pollIntervalMs: 200 } },
    })
    this.#app = app
    await history.remember(plan(topology))
    await outputs.watch(app.status().outputs)
    return app
  }

  #troubles(): readonly string[] {
    const { problem } = this.#parts.tables
    const blocked = [...new Set(this.#blocked.values()), ...(problem === undefined ? [] : [problem])]
    const status = this.#app?.status()
    if (status === undefined) return blocked
    const shards = shardViews(status).flatMap(({ shardId, state }) =>
      state.includes(': ') ? `${shardId} ${state}` : [],
    )
    return [...blocked, ...shards]
  }

  /** The block shows troubles while they last; here they are told once. */
  #tellTroubles(): void {
    const troubles = this.#troubles().join('\n')
    if (troubles !== this.#lastTroubles && troubles !== '') this.#parts.display.mention(troubles)
    this.#lastTroubles = troubles
  }

  get hasFailed(): boolean {
    return this.#sentLines > 0 && this.#parts.deadLetters.records >= this.#sentLines
  }

  get #sentLines(): number {
    return [...this.#sent.values()].reduce((sum, count) => sum + count, 0)
  }

  /** With `once` also what was due at the end of the input. */
  #isProcessed(app: LocalApplication, sentAtMs: number): boolean {
    if (!app.hasProcessed(sentAtMs)) return false
    if (!this.#parts.options.once) return true
    if (this.#ended?.app !== app) {
      app.endInput()
      this.#ended = { app, atMs: undefined }
    }
    if (!app.hasEnded()) return false
    const atMs = this.#ended.atMs ?? systemClock.nowMs()
    this.#ended = { app, atMs }
    // What came of the end is processed by the stages behind, too.
    return app.hasProcessed(atMs)
  }

  async #tellSettled(): Promise<void> {
    const { options, outputs, tables, display, history, deadLetters } = this.#parts
    const app = this.#app
    if (this.isSettled || this.#sentAtMs === undefined || app === undefined) return
    if (this.#processedAtMs === undefined && this.#isProcessed(app, this.#sentAtMs)) {
      this.#processedAtMs = systemClock.nowMs()
    }
    if (this.#processedAtMs === undefined || !outputs.haveRead(this.#processedAtMs)) return
    await tables.look('now')
    this.isSettled = true
    const lines = this.#sentLines
    const counts = [...outputs.counts].map(([name, count]) => `${name} ${grouped(count)}`)
    const rows = [...tables.views].map(([name, view]) => `${name} ${rowCount(view)}`)
    display.say(
      [
        `All input is processed: ${counted(lines, 'line')} sent in this run. In the streams: ${counts.join(', ')}.`,
        ...(rows.length > 0 ? [`In the tables: ${rows.join(', ')}.`] : []),
      ].join(' '),
    )
    if (deadLetters.last !== undefined) {
      const all = this.hasFailed ? 'Every line became a dead letter. ' : ''
      display.say(
        `${all}\`millrace dead-letters show ${deadLetters.last} --app ${options.code.topology.name}\` says why, with the error and the record.`,
      )
    }
    if (app.hasTimeEnded()) {
      await history.endTime()
      display.say(
        'The input has ended, and event time with it: every window is closed. What a later run sends is late; --fresh starts over.',
      )
    }
    for (const line of this.#lateness.lines(plan(this.#parts.options.code.topology))) display.say(line)
  }
}
