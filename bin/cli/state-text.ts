/** How state is shown, to people and as JSON. */
import { slotOf } from '../../lib/core/slot.ts'
import { grouped, table } from '../../lib/local/display/run-display.ts'
import type { KeyedProgress, UpstreamStatus } from '../../lib/runtime/progress/progress.ts'

import type { KeyOwn } from '../../lib/state/key-own.ts'
import { printable } from './dead-letter-text.ts'
import type { Explanation, HoldingPartition, ShownTimer } from './state-explain.ts'
import type { StageLog, StatePlace } from './state-place.ts'
import type { KeyPage, ListedKey, ShownKey, ShownState } from './state-reading.ts'
import { counted, timeWords } from './words.ts'

/**
 * A value as JSON has it. What JSON has no form for is an object with one name: `{"$bigint":"12"}`, `{"$bytes":"<base64>"}`,
 * `{"$undefined":true}`.
 */
export function plainValue(value: unknown): unknown {
  if (value === undefined) return { $undefined: true }
  if (typeof value === 'bigint') return { $bigint: value.toString() }
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString('base64') }
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, inner]) => [name, plainValue(inner)]))
  if (Array.isArray(value)) return value.map(plainValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plainValue(inner)]))
}

const timeText = (ms: number): string => (Number.isFinite(ms) ? timeWords(ms) : 'none')
/** Null where there is none, `end-of-input` where no time is later. */
const timeJson = (ms: number): string | null =>
  ms === Number.POSITIVE_INFINITY ? 'end-of-input' : Number.isFinite(ms) ? timeWords(ms) : null
const secondsText = (seconds: number): string => timeText(seconds * 1_000)

export function keyJson({ key, item, states, hasMoreEntries }: ShownKey): string {
  return JSON.stringify({
    key,
    position: item.position,
    states: Object.fromEntries(states.map(({ name, value }) => [name, plainValue(value)])),
    ...(hasMoreEntries ? { hasMoreEntries } : {}),
  })
}

/** One state after the other; what is long takes a line for each of its parts. */
export function keyLines(
  { key, item, states, hasMoreEntries }: ShownKey,
  { title, declared }: StatePlace,
): readonly string[] {
  const untyped = 'The topology is not at hand, so states are shown as they are stored: name its file with --topology.'
  return [
    `${printable(key)} in ${title}`,
    `position ${grouped(item.position)}`,
    '',
    ...states.flatMap((state) => stateLines(state, declared !== undefined)),
    ...(declared === undefined ? ['', untyped] : []),
    ...(states.length === 0 ? ['It keeps no state any more.'] : []),
    ...(hasMoreEntries ? ['', 'There are more entries of map states: --entries shows more.'] : []),
  ]
}

const longestLine = 100

function stateLines({ name, kind, value }: ShownState, isTyped: boolean): readonly string[] {
  const undeclared = isTyped && kind === undefined ? ' (not declared: as it is stored)' : ''
  const note = kind === 'packed' ? ' (as it is stored)' : undeclared
  if (value === undefined) return [`${name}${note}: none`]
  const plain = plainValue(value)
  const whole = `${name}${note}: ${printable(JSON.stringify(plain))}`
  if (whole.length <= longestLine || typeof plain !== 'object' || plain === null) return [whole]
  const parts = Array.isArray(plain)
    ? plain.map((part) => JSON.stringify(part))
    : Object.entries(plain).map(([part, inner]) => `${part}: ${JSON.stringify(inner)}`)
  return [`${name}${note}:`, ...parts.map((part) => `  ${printable(part)}`)]
}

export function pageJson({ keys, after }: KeyPage): string {
  return JSON.stringify({ keys: keys.map(listedJson), ...(after === undefined ? {} : { after }) })
}

const listedJson = ({ key, position, expiresAtSeconds }: ListedKey) => ({
  key,
  position,
  ...(expiresAtSeconds === undefined ? {} : { expiresAt: secondsText(expiresAtSeconds) }),
})

export function listLines({ keys, after }: KeyPage, { title, flags, slots, stage }: StatePlace): readonly string[] {
  const rows = keys.map(({ key, position, expiresAtSeconds }) => [
    printable(key),
    String(slotOf(key, slots)),
    grouped(position),
    expiresAtSeconds === undefined ? '' : secondsText(expiresAtSeconds),
  ])
  const more =
    after === undefined
      ? []
      : ['', `There are more: \`millrace state list ${stage} --after ${shellWord(after)} ${flags}\`.`]
  const heads = ['key', 'slot', 'position', rows.some(([, , , expires]) => expires !== '') ? 'TTL may take it' : '']
  return [
    `${counted(keys.length, 'key')} of ${title}`,
    ...(keys.length === 0 ? [] : ['', ...table([heads, ...rows], [false, true, true, false])]),
    ...more,
  ]
}

/** As a shell takes it for one word. */
const shellWord = (text: string): string =>
  /^[\w.:/@%+-]+$/.test(text) ? text : `'${printable(text).replaceAll("'", `'\\''`)}'`

export function explanationJson({ log }: StatePlace, explanation: Explanation): string {
  const { key, item, slot, partitions, current, own, timers } = explanation
  return JSON.stringify({
    ...{ key, slot, position: item.position },
    ...(item.expiresAtSeconds === undefined ? {} : { expiresAt: secondsText(item.expiresAtSeconds) }),
    ...(partitions === undefined
      ? {}
      : { log: log?.kind, partitions: partitions.map(partitionJson), current: current?.partition ?? null }),
    timers: timers.map(({ timeMs, ...timer }) => ({ ...timer, time: timeText(timeMs) })),
    redrives: Object.keys(own.redrives ?? {}),
    own: plainValue(own),
  })
}

function partitionJson({ partition, isClosed, progress }: HoldingPartition) {
  if (progress === undefined) return { partition, isClosed, progress: null }
  const { completed, number, doneThrough, processingMs, watermarkMs, known, upstreams, failing, suspect, log } =
    progress
  return {
    ...{ partition, isClosed },
    ...(log === undefined ? {} : { topicId: log }),
    progress: {
      ...{ completed, number, doneThrough, asOf: processingMs > 0 ? timeJson(processingMs) : null },
      ...{ knowsUpstreams: known, watermark: timeJson(watermarkMs) },
      upstreams: [...upstreams.values()].map(({ upstream, state, markMs }) => ({
        ...upstream,
        state,
        mark: timeJson(markMs),
      })),
      ...(failing === undefined ? {} : { failing }),
      ...(suspect === undefined ? {} : { suspect }),
    },
  }
}

/** In words; each line says what it means to somebody who has not read how Millrace works. */
export function explanationLines(place: StatePlace, explanation: Explanation, nowMs: number): readonly string[] {
  const { key, item, slot, current, own, timers } = explanation
  return [
    `${printable(key)} in ${place.title}`,
    '',
    `slot        ${slot} of ${place.slots}`,
    ...partitionLines(place, explanation),
    `position    ${grouped(item.position)}: every record of the key up to this number of the partition's log, counted from its beginning, is applied`,
    ...ownTimeLines(own),
    ...(current?.progress === undefined ? [] : progressLines(place.log, current.progress, item.position)),
    ...timerLines(timers, slot, current?.progress),
    `time to live ${item.expiresAtSeconds === undefined ? 'none: the key stays' : `TTL may take the key from ${secondsText(item.expiresAtSeconds)} on${item.expiresAtSeconds * 1_000 <= nowMs ? ', which has come' : ''}`}`,
    ...touchedLines(own),
    ...redriveLines(own),
  ]
}

function partitionLines({ log }: StatePlace, { partitions, current }: Explanation): readonly string[] {
  if (log === undefined || partitions === undefined) {
    return ['partition   not known: say with --stream which stream the stage reads']
  }
  if (log.kind === 'topic') {
    if (current?.progress === undefined)
      return ["partition   not known yet: nothing of the stage's Kafka topic is done"]
    const { log: id } = current.progress
    return [
      `partition   ${current.partition} of the stage's Kafka topic${id === undefined ? '' : `, which has the id ${id}`}`,
    ]
  }
  const newest = partitions.at(-1)
  if (current === undefined) return [`partition   ${newest?.partition ?? 'none'} of ${log.name}, not begun`]
  const waits =
    newest === undefined || newest === current ? '' : `; ${newest.partition} follows it, and begins when it is drained`
  return [`partition   ${current.partition} of ${log.name}${waits}`]
}

/** What the service calls a place in its log, and the log. */
const wordsOf = { stream: ['sequence number', 'stream'], topic: ['offset', 'topic'] } as const

function progressLines(log: StageLog | undefined, progress: KeyedProgress, position: number): readonly string[] {
  const [place, what] = wordsOf[log?.kind ?? 'stream']
  const { completed, number, doneThrough, processingMs, watermarkMs, known, upstreams, failing, suspect } = progress
  const counts = `${grouped(doneThrough)} numbers are done, ${completed === undefined ? 'and no entry of the log as a whole' : `up to ${place} ${completed}`}`
  const within = doneThrough === number ? '' : ` and ${grouped(doneThrough - number)} numbers of the next entry`
  return [
    `done        ${counts}${within}`,
    `since then  ${sinceThen(position, doneThrough)}`,
    ...(processingMs > 0
      ? [`as of       ${timeText(processingMs)} (UTC): the newest entry that is done came into the ${what} then`]
      : []),
    `watermark   ${watermarkText(watermarkMs, known)}`,
    `upstreams   ${upstreams.size === 0 ? 'none is known yet' : counted(upstreams.size, 'partition')}`,
    ...upstreamLines([...upstreams.values()]),
    ...(failing === undefined
      ? []
      : [
          `failing     number ${grouped(failing.number)} failed ${counted(failing.attempts, 'time')}, and what is behind it waits`,
        ]),
    ...(suspect === undefined
      ? []
      : [
          `suspect     one of the numbers ${grouped(suspect.from)} to ${grouped(suspect.to)} ends the process: it is being looked for`,
        ]),
  ]
}

/** What a key remembers of the times of its records: a TTL goes by it. */
function ownTimeLines({ eventTimeMs, arrivalTimeMs }: KeyOwn): readonly string[] {
  return [
    ...(arrivalTimeMs === undefined
      ? []
      : [`            the last of them to arrive did so at ${timeText(arrivalTimeMs)} (UTC)`]),
    ...(eventTimeMs === undefined ? [] : [`            their largest event time is ${timeText(eventTimeMs)} (UTC)`]),
  ]
}

function sinceThen(position: number, doneThrough: number): string {
  if (position > doneThrough) {
    return `a batch is under way, or was cut off: of the numbers from ${grouped(doneThrough + 1)} to ${grouped(position)}, those of this key are applied already, and are passed over when they come again`
  }
  const numbers = doneThrough - position
  if (numbers === 0) return 'nothing: the last number that is done changed this key'
  if (numbers === 1) return '1 further number is done, which did not change this key'
  return `${grouped(numbers)} further numbers are done, none of which changed this key`
}

function watermarkText(watermarkMs: number, known: boolean): string {
  if (Number.isFinite(watermarkMs)) return `${timeText(watermarkMs)} (event time)`
  if (watermarkMs > 0) return 'the end of all input'
  return known ? 'none yet: an upstream that is open has no mark' : 'none yet: the upstreams were not announced'
}

function upstreamLines(upstreams: readonly UpstreamStatus[]): readonly string[] {
  const rows = upstreams
    .toSorted((a, b) => (a.upstream.partition < b.upstream.partition ? -1 : 1))
    .map(({ upstream, state, markMs }) => [
      // Shards have names, and partitions of Kafka are numbers.
      `              ${upstream.name} ${/^\d+$/.test(upstream.partition) ? 'partition ' : ''}${upstream.partition}`,
      state,
      markMs === Number.POSITIVE_INFINITY ? 'its input has ended' : `mark ${timeText(markMs)}`,
    ])
  return rows.length === 0 ? [] : table(rows, [false, false, false])
}

function timerLines(
  timers: readonly ShownTimer[],
  slot: number,
  progress: KeyedProgress | undefined,
): readonly string[] {
  const rows = timers.map(({ domain, name, timeMs, isDue, hasDueEntry }) => [
    `              ${printable(name)}`,
    domain,
    timeText(timeMs),
    isDue === undefined ? '' : isDue ? 'due' : 'waits',
    hasDueEntry === undefined ? '' : hasDueEntry ? 'found by its due entry' : 'without a due entry',
  ])
  const earliest = progress?.earliest.event.get(slot)
  return [
    `timers      ${timersText(timers)}`,
    ...(rows.length === 0 ? [] : table(rows, [false, false, false, false, false])),
    ...(earliest === undefined
      ? []
      : [`            the first timer of any key of the slot is for ${timeText(earliest)} or later`]),
  ]
}

function timersText(timers: readonly ShownTimer[]): string {
  if (timers.length === 0) return 'none: nothing of the key waits for a time'
  const all = counted(timers.length, 'timer')
  if (timers.some(({ isDue }) => isDue === undefined)) return all
  const due = timers.filter(({ isDue }) => isDue).length
  return `${all}, ${due === 0 ? 'none' : grouped(due)} due`
}

function touchedLines({ states = {} }: KeyOwn): readonly string[] {
  const rows = Object.entries(states).flatMap(([name, { touchedMs }]) =>
    touchedMs === undefined
      ? []
      : [[`              ${printable(name)}`, `touched last at ${timeText(touchedMs)} of the key's time`]],
  )
  return rows.length === 0 ? [] : table(rows, [false, false])
}

function redriveLines({ redrives = {} }: KeyOwn): readonly string[] {
  const remembered = Object.entries(redrives)
  if (remembered.length === 0) return []
  return [
    `redrives    ${counted(remembered.length, 'redriven record')}, each applied once`,
    ...remembered.map(([id, until]) => `              ${printable(id)}, remembered until ${secondsText(until)}`),
  ]
}
