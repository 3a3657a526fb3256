/** Sends what is left of the input and watches until all of it is processed and its outputs are read back. */
import { systemClock } from '../../lib/aws/system-clock.ts'
import { type RunDisplay, type RunView, shardViews, stageTroubles } from '../../lib/local/display/run-display.ts'
import type { ProgressFile } from '../../lib/local/files/progress-file.ts'
import type { LocalApplication, LocalStatus } from '../../lib/local/run/application.ts'
import { hoursNote } from './airport-report.ts'
import type { HourOutputs } from './hour-outputs.ts'
import type { InputRecord } from './input.ts'
import { type Outcomes, outcomeKinds, outcomeLabels } from './outcomes.ts'
import { payloadText, type ReplayProgress, type RunSettings, replay } from './replay.ts'
import { readSourceLog } from './source-log.ts'

export interface ProcessingParts {
  readonly input: readonly InputRecord[]
  readonly settings: RunSettings
  readonly progress: ProgressFile<ReplayProgress>
  /** The run that this one goes on with. */
  readonly earlier: ReplayProgress | undefined
  readonly speed: number | 'max'
  /** What is read back from the output streams, as it comes. */
  readonly outcomes: Outcomes
  readonly hours: HourOutputs
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
  const { display, input, settings, progress, earlier, outcomes, hours, signal } = parts
  // What earlier runs put out is read first, so that the counts go on from there.
  const readSinceMs = systemClock.nowMs()
  await until(() => app.hasReadOutputs(readSinceMs), signal)
  if (signal.aborted) return undefined
  const taken = takenCounter(app, outcomes)
  let sent = earlier?.sent ?? 0
  let problem: string | undefined
  const onBlocked = (now: string | undefined) => {
    problem = now
  }
  const meter = new RateMeter()
  const view = () => viewOf(app, { sent, total: input.length, taken: taken(sent), outcomes, hours, meter, problem })
  const show = () => display.show(view)
  if (!earlier?.finished) {
    await whileShowing(progress.save({ settings, sent, finished: false }, { signal, onBlocked }), show)
  }
  const { streamName } = app.streamOf('flights')
  const goesOn = earlier !== undefined && sent < input.length
  const already = goesOn ? await payloadsIn(app, streamName) : new Set<string>()
  const startedAtMs = systemClock.nowMs()
  await app.run()
  const onSent = (count: number) => {
    sent = count
  }
  const replaying = replay({
    ...parts,
    client: app.client,
    streamName,
    from: sent,
    already,
    clock: systemClock,
    onSent,
    onBlocked,
  })
  await whileShowing(replaying, show)
  const sentAtMs = systemClock.nowMs()
  await until(() => app.hasProcessed(sentAtMs), signal, show)
  // Nothing more is to come, so every window closes, however far its end is from the last report.
  if (!signal.aborted) app.endInput()
  await until(() => app.hasEnded(), signal, show)
  const endedAtMs = systemClock.nowMs()
  const session = { records: recordsDone(app), startedAtMs, endedAtMs }
  await until(() => app.hasReadOutputs(endedAtMs), signal, show)
  if (signal.aborted) return undefined
  display.show(view, 'now')
  display.keep()
  return session
}

/** An interrupted run may have sent more than it could note. */
async function payloadsIn(app: LocalApplication, streamName: string): Promise<ReadonlySet<string>> {
  const log = await readSourceLog(app.client, streamName)
  return new Set(log.flatMap((shard) => shard.map(payloadText)))
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

/** The stage that reads the input. What the keyed stage is given are frames, which are no records of the input. */
const sourceStages = ({ stages }: LocalStatus) => stages.filter(({ kind }) => kind !== 'keyed')

const recordsDone = (app: Pick<LocalApplication, 'status'>): number =>
  sourceStages(app.status())
    .flatMap((stage) => [...stage.recordsDone.values()])
    .reduce((sum, done) => sum + done, 0)

/** Records that were given to the function and are not yet done and saved. */
const recordsUnderWay = (status: LocalStatus): number =>
  sourceStages(status)
    .flatMap(({ mapping }) => mapping.shards)
    .reduce((sum, { unfinished, lanes }) => sum + unfinished - lanes.reduce((all, { waiting }) => all + waiting, 0), 0)

/**
 * Counts the records that the function has taken, each once, of so many that were sent. Each has one outcome, so those of
 * earlier runs say how many these had taken. After a crash the function takes some of them again: what comes out once more
 * is taken off, and until it has come out the count is held at what was sent.
 */
export function takenCounter(
  app: Pick<LocalApplication, 'status'>,
  outcomes: Pick<Outcomes, 'total' | 'repeats'>,
): (sent: number) => number {
  const before = outcomes.total + outcomes.repeats
  return (sent) => Math.min(sent, before + recordsDone(app) + recordsUnderWay(app.status()) - outcomes.repeats)
}

interface Moment {
  readonly sent: number
  readonly total: number
  readonly taken: number
  readonly outcomes: Outcomes
  readonly hours: HourOutputs
  readonly meter: RateMeter
  /** Why nothing is sent. */
  readonly problem: string | undefined
}

function viewOf(app: LocalApplication, { sent, total, taken, outcomes, hours, meter, problem }: Moment): RunView {
  const status = app.status()
  return {
    sent,
    total,
    taken,
    repeats: outcomes.repeats,
    recordsPerSecond: meter.rate(recordsDone(app)),
    outputs: outcomeKinds.map((kind) => ({ name: outcomeLabels[kind], records: outcomes.of(kind).size })),
    notes: [hoursNote(hours)],
    shards: shardViews({ stages: sourceStages(status) }),
    troubles: [
      ...(problem === undefined ? [] : [`blocked: ${problem}`]),
      ...keyedTroubles(status),
      ...stageTroubles(status),
    ],
  }
}

/** Shards of the keyed stage are shown where something is wrong with them. */
function keyedTroubles({ stages }: LocalStatus): readonly string[] {
  const shards = shardViews({ stages: stages.filter(({ kind }) => kind === 'keyed') })
  return shards.flatMap(({ shardId, state }) => (state.includes(': ') ? [`by-origin ${shardId} ${state}`] : []))
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
