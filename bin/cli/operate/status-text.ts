/** The status of an application as people read it, and as JSON. */
import { grouped, table } from '../../../lib/local/display/run-display.ts'
import { counted, timeWords } from '../words.ts'
import type { GroupLag, Operated } from './operated.ts'
import type { PartitionStatus, StageStatus } from './stage-status.ts'

function timeText(ms: number | undefined): string {
  if (ms === Number.POSITIVE_INFINITY) return 'the end of all input'
  return ms === undefined || !Number.isFinite(ms) ? '-' : timeWords(ms)
}

const timeJson = (ms: number | undefined): string | null =>
  ms === undefined || !Number.isFinite(ms) ? null : timeWords(ms)

const heads = ['stage', 'kind', 'mapping', 'partitions', 'number', 'event time', 'behind', 'next due', 'caught up']
const numeric = [false, false, false, true, true, false, true, false, false]

export function statusLines(
  { title, note, flags }: Pick<Operated, 'title' | 'note' | 'flags'>,
  stages: readonly StageStatus[],
  nowMs: number,
): readonly string[] {
  const generation = Math.max(1, ...stages.map((stage) => stage.generation))
  return [
    generation === 1 ? title : `${title}, generation ${generation}`,
    '',
    ...table([heads, ...stages.map((stage) => row(stage, nowMs))], numeric),
    ...stages.flatMap(lagLines),
    ...stages.flatMap(troubles(flags)),
    ...(note === undefined ? [] : ['', note]),
  ]
}

const mappingTexts: Readonly<Record<string, string>> = { Enabled: 'enabled', Disabled: 'paused', Missing: 'missing' }

function row({ stage, kind, mapping, partitions }: StageStatus, nowMs: number): readonly string[] {
  const shown = mappingTexts[mapping] ?? mapping.toLowerCase()
  if (partitions === undefined) return [stage, kind, shown, '-', '-', '-', '-', '-', '-']
  return [
    stage,
    kind,
    shown,
    grouped(partitions.filter(({ isClosed }) => !isClosed).length),
    grouped(partitions.reduce((sum, { number }) => sum + number, 0)),
    timeText(leastEventTimeMs(partitions)),
    behind(partitions, nowMs),
    timeText(dueMs(partitions)),
    partitions.every(({ isCaughtUp }) => isCaughtUp) ? 'yes' : 'no',
  ]
}

/** Of the partitions that take records and have a time: where the stage as a whole has come to. */
function leastEventTimeMs(partitions: readonly PartitionStatus[]): number | undefined {
  const times = partitions.flatMap(({ isClosed, eventTimeMs }) =>
    isClosed || !(eventTimeMs > Number.NEGATIVE_INFINITY) ? [] : [eventTimeMs],
  )
  return times.length === 0 ? undefined : Math.min(...times)
}

function dueMs(partitions: readonly PartitionStatus[]): number | undefined {
  const times = partitions.flatMap(({ isClosed, dueMs: ms }) => (isClosed || ms === undefined ? [] : [ms]))
  return times.length === 0 ? undefined : Math.min(...times)
}

function behind(partitions: readonly PartitionStatus[], nowMs: number): string {
  if (partitions.every(({ isCaughtUp }) => isCaughtUp)) return '0 s'
  const since = partitions.flatMap(({ waitingSinceMs }) => (waitingSinceMs === undefined ? [] : [waitingSinceMs]))
  if (since.length === 0) return '?'
  const seconds = Math.max(0, Math.round((nowMs - Math.min(...since)) / 1_000))
  if (seconds < 120) return `${seconds} s`
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`
}

/** How far the group of a mapping is, for whoever looks at it with the tools of Kafka. */
function lagLines({ stage, lag, problem }: StageStatus): readonly string[] {
  return [
    ...(lag === undefined ? [] : [`${stage}: group ${lag.group} of topic ${lag.topic} ${lagText(lag)}`]),
    ...(problem === undefined ? [] : [`${stage}: its topic is not shown in full. ${problem}`]),
  ]
}

const mostShown = 8

function lagText({ partitions }: GroupLag): string {
  const late = partitions
    .filter(({ behind: offsets }) => offsets > 0)
    .toSorted((one, other) => other.behind - one.behind)
  if (late.length === 0) return `has committed all of ${counted(partitions.length, 'partition')}.`
  const sum = late.reduce((all, { behind: offsets }) => all + offsets, 0)
  const shown = late.slice(0, mostShown).map(({ partition, behind: offsets }) => `${partition} (${grouped(offsets)})`)
  const more = late.length > mostShown ? ` and ${late.length - mostShown} more` : ''
  return `is ${grouped(sum)} behind, in ${counted(late.length, 'partition')} of ${partitions.length}: ${shown.join(', ')}${more}.`
}

/** What needs somebody's eye, a line for each partition. */
const troubles =
  (flags: string) =>
  ({ stage, partitions = [], isBeingReset }: StageStatus): readonly string[] => {
    const cutOff = `${stage}: a reset of it has begun and not ended, and it waits. Where that was cut off, run \`millrace reset ${flags}\` again.`
    return [...(isBeingReset ? [cutOff] : []), ...partitions.flatMap(partitionTroubles(stage, flags))]
  }

const partitionTroubles =
  (stage: string, flags: string) =>
  ({ partition, failing, suspect }: PartitionStatus): readonly string[] => [
    ...(failing === undefined
      ? []
      : [
          `${stage} ${partition}: record ${grouped(failing.number)} fails, ${counted(failing.attempts, 'attempt')} so far. \`millrace skip ${stage} --partition ${partition} ${flags}\` makes it a dead letter.`,
        ]),
    ...(suspect === undefined
      ? []
      : [
          `${stage} ${partition}: one of the records ${grouped(suspect.from)} to ${grouped(suspect.to)} may end the process, ${counted(suspect.attempts, 'attempt')} so far. It is looked for.`,
        ]),
  ]

export function statusJson(
  { topology, note }: Pick<Operated, 'topology' | 'note'>,
  stages: readonly StageStatus[],
  nowMs: number,
): string {
  return JSON.stringify({
    application: topology,
    at: timeJson(nowMs),
    isUp: note === undefined,
    stages: stages.map(({ partitions, ...stage }) => ({
      ...stage,
      partitions:
        partitions?.map(({ eventTimeMs, dueMs: due, waitingSinceMs, ...partition }) => ({
          ...partition,
          eventTime: timeJson(eventTimeMs),
          nextDue: timeJson(due),
          waitingSince: timeJson(waitingSinceMs),
        })) ?? null,
    })),
  })
}
