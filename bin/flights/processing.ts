/** Sends what is left of the input and watches until all of it is processed and its outputs are read back. */
import { systemClock } from '../../lib/aws/system-clock.ts'
import type { LocalApplication, LocalStatus } from '../../lib/local/local-application.ts'
import { type RunDisplay, type RunView, shardViews } from '../../lib/local/run-display.ts'
import type { InputRecord } from './input.ts'
import { type ReplayProgress, type RunSettings, replay, writeProgress } from './replay.ts'

export interface ProcessingParts {
  readonly input: readonly InputRecord[]
  readonly settings: RunSettings
  readonly progressFile: string
  /** The run that this one goes on with. */
  readonly earlier: ReplayProgress | undefined
  readonly speed: number | 'max'
  readonly display: RunDisplay
  readonly signal: AbortSignal
}

/** What the processing of this run amounted to; times in ms since 1970. */
export interface Session {
  readonly records: number
  readonly startedAtMs: number
  readonly endedAtMs: number
}

const tickMs = 50

/** Resolves with the session, or with undefined where the signal ended it. Rejects where the stream refuses the input. */
export async function processInput(parts: ProcessingParts, app: LocalApplication): Promise<Session | undefined> {
  const { display, input, settings, progressFile, earlier, signal } = parts
  // What earlier runs put out is read first, so that the counts go on from there.
  const readSinceMs = systemClock.nowMs()
  await until(() => app.hasReadOutputs(readSinceMs), signal)
  if (signal.aborted) return undefined
  const outputsBefore = outputCount(app)
  let sent = earlier?.sent ?? 0
  if (!earlier?.finished) await writeProgress(progressFile, { settings, sent, finished: false })
  const meter = new RateMeter()
  const show = () => display.show(() => viewOf(app, { sent, total: input.length, outputsBefore, meter }))
  const startedAtMs = systemClock.nowMs()
  await app.run()
  const onSent = (count: number) => {
    sent = count
  }
  const streamName = app.streamOf('flights').streamName
  const replaying = replay({ ...parts, client: app.client, streamName, from: sent, clock: systemClock, onSent })
  await whileShowing(replaying, show)
  const sentAtMs = systemClock.nowMs()
  await until(() => app.hasProcessed(sentAtMs), signal, show)
  const endedAtMs = systemClock.nowMs()
  const session = { records: recordsDone(app), startedAtMs, endedAtMs }
  await until(() => app.hasReadOutputs(endedAtMs), signal, show)
  if (signal.aborted) return undefined
  display.show(() => viewOf(app, { sent, total: input.length, outputsBefore, meter }), 'now')
  display.keep()
  return session
}

/** Waits for a condition or the signal. */
export async function until(
  condition: () => boolean,
  signal: AbortSignal,
  onTick: () => void = () => undefined,
): Promise<void> {
  while (!signal.aborted && !condition()) {
    onTick()
    await systemClock.sleep(tickMs, signal)
  }
}

/** Shows the state until the work is done or has failed. */
async function whileShowing(work: Promise<unknown>, show: () => void): Promise<void> {
  const ended = new AbortController()
  const showing = until(() => false, ended.signal, show)
  try {
    await work
  } finally {
    ended.abort()
    await showing
  }
}

const outputCount = (app: LocalApplication): number =>
  app.status().outputs.reduce((sum, { records }) => sum + records, 0)

const recordsDone = (app: LocalApplication): number =>
  app
    .status()
    .stages.flatMap((stage) => [...stage.recordsDone.values()])
    .reduce((sum, done) => sum + done, 0)

/** Records that were given to the function and are not yet done and saved. */
const recordsUnderWay = ({ stages }: LocalStatus): number =>
  stages
    .flatMap(({ mapping }) => mapping.shards)
    .reduce((sum, { unfinished, lanes }) => sum + unfinished - lanes.reduce((all, { waiting }) => all + waiting, 0), 0)

interface Sent {
  readonly sent: number
  readonly total: number
  /** Each record has one output, so the outputs of earlier runs say how many they had processed. */
  readonly outputsBefore: number
  readonly meter: RateMeter
}

const shownNames: Readonly<Record<string, string>> = { 'flights-clean': 'clean', 'flights-rejected': 'rejected' }

function viewOf(app: LocalApplication, { sent, total, outputsBefore, meter }: Sent): RunView {
  const status = app.status()
  const done = recordsDone(app)
  return {
    sent,
    total,
    taken: outputsBefore + done + recordsUnderWay(status),
    recordsPerSecond: meter.rate(done),
    outputs: status.outputs.map(({ name, records }) => ({ name: shownNames[name] ?? name, records })),
    shards: shardViews(status),
  }
}

const rateWindowMs = 3_000

/** Records a second over the last few seconds. */
class RateMeter {
  readonly #samples: { readonly atMs: number; readonly count: number }[] = []

  rate(count: number): number {
    const atMs = systemClock.nowMs()
    this.#samples.push({ atMs, count })
    while (this.#samples.length > 2 && atMs - (this.#samples[0]?.atMs ?? atMs) > rateWindowMs) this.#samples.shift()
    const [first] = this.#samples
    if (first === undefined || atMs === first.atMs) return 0
    return ((count - first.count) / (atMs - first.atMs)) * 1_000
  }
}
