/**
 * The referees of the application with time: each looks at a finished run for one promise, by name, and says what breaks it.
 */
import type { Referee } from './findings.ts'
import { drains, isOfKilled, noSurprises } from './referees.ts'
import { contentOf, type Delivery } from './sinks.ts'
import type { TimedEvidence } from './timed-evidence.ts'
import type { TimedLine } from './timed-log.ts'
import { amountOf, followsFromSource, windowName } from './timed-source.ts'
import {
  farMs,
  finals,
  groupOf,
  groupSlots,
  isAddedSink,
  timedNames,
  totals,
  visitorSlots,
  type Watched,
  type WindowOutput,
  type WindowSpec,
} from './timed-workload.ts'

const never = new AbortController().signal

/** P1: each record of the source is a dead letter with its bytes, or each of its hits came once, with the own mark it has there. */
function* nothingLost({ hits, source, deadLetters, killed }: TimedEvidence): Iterable<string> {
  const dead = new Set(deadLetters.map(({ letter }) => letter.payload))
  for (const payload of source.dead) {
    if (!dead.has(payload)) yield `no dead letter has the record ${Buffer.from(payload, 'base64')}`
  }
  const arrived = new Map<string, number>()
  for (const { record } of hits.lines) {
    if (record === undefined || record.redrive !== undefined) continue
    const { hit } = record.value
    arrived.set(hit, (arrived.get(hit) ?? 0) + 1)
    const sent = source.hits.get(hit)
    if (sent === undefined) yield `the hit ${hit} was never sent`
    else if (sent.ownMarkMs !== record.ownMarkMs && killed.size === 0) {
      yield `the hit ${hit} has the own mark ${record.ownMarkMs}, and its partition says ${sent.ownMarkMs}`
    }
  }
  // A visit that was taken for what ended the process is a dead letter of the first stage.
  if ([...killed].some((id) => id.startsWith(timedNames.source))) return
  for (const hit of source.hits.keys()) {
    if (arrived.get(hit) !== 1) yield `the hit ${hit} came ${arrived.get(hit) ?? 0} times to the keyed stage`
  }
}

/** P3, and redeliveries equal to the byte: over everything that was ever delivered, one identity has one content. */
function* oneContent({ run, hits, results, deadLetters }: TimedEvidence): Iterable<string> {
  yield* hits.contradictions
  yield* results.contradictions
  const contents = new Map<string, string>()
  const letters = deadLetters.map(({ identity, letter }) => ({ identity, content: `${letter.id} ${letter.payload}` }))
  for (const { identity, content } of [
    ...run.deliveries.filter(({ sink }) => sink !== 'dead-letters' && !isAddedSink(sink)),
    ...letters,
  ]) {
    const first = contents.get(identity)
    if (first === undefined) contents.set(identity, content)
    else if (first !== content) yield `${identity} has the contents ${first} and ${content}`
  }
}

/** P3: who applies each identity once has exactly the outputs of the sequential fold, in sinks and in the second keyed stage. */
function* appliedOnce(evidence: TimedEvidence): Iterable<string> {
  const { run, applied, visitors, groups, deadLetters, results, killed } = evidence
  const got = new Map(
    applied.filter(({ sink }) => !isAddedSink(sink)).map(({ identity, content }) => [identity, content]),
  )
  const want = new Map([...visitors.outputs, ...groups.outputs])
  for (const [identity, content] of want) {
    if (got.get(identity) !== content) yield `${identity} is ${got.get(identity) ?? 'missing'}, not ${content}`
  }
  for (const [identity, content] of got) {
    if (!want.has(identity) && !isOfKilled(identity, killed)) yield `${identity} should not be there: ${content}`
  }
  const letters = new Map(deadLetters.map(({ letter }) => [letter.id, letter]))
  const dead = new Set([...visitors.dead, ...groups.dead])
  for (const id of dead) if (!letters.has(id)) yield `the dead letter ${id} is missing`
  for (const [id, { reason }] of letters) {
    if (reason.phase === 'timer' && !dead.has(id)) yield `there should be no dead letter ${id}`
  }
  if (!run.hasThirdStage) return
  const sent = sortedContents(
    [...visitors.outputs].filter(([identity]) => identity.startsWith(`${finals.name}:`)).map(([, content]) => content),
  )
  const arrived = sortedContents(results.lines.flatMap(({ record }) => (record ? [contentOf(record.value)] : [])))
  const asSent = sortedContents(sent.map((content) => contentOf(groupResultOf(JSON.parse(content)))))
  // A stage that a redeploy adds has nothing of what went before.
  const isWhole = run.drawn.changes.stage
    ? arrived.every((one) => asSent.includes(one))
    : arrived.join() === asSent.join()
  if (!isWhole) yield `the second keyed stage has ${differences(arrived, asSent)}`
}

const groupResultOf = ({ user, endMs, cents }: WindowOutput) => ({ user, group: groupOf(user), endMs, cents })
const sortedContents = (contents: readonly string[]): string[] => [...contents].sort()

function differences(has: readonly string[], want: readonly string[]): string {
  const [more, less] = [
    has.filter((content) => !want.includes(content)),
    want.filter((content) => !has.includes(content)),
  ]
  return `${has.length} results for ${want.length}: too many are ${more.slice(0, 2)}, missing are ${less.slice(0, 2)}`
}

/** P2: what is kept of each user is what one record after the other makes of it; a user of whom nothing is kept may be gone. */
async function* stateEqualsOracle({ run, visitors }: TimedEvidence): AsyncIterable<string> {
  const table = run.stages.table(timedNames.keyed)
  const found = await table.readKeys([...visitors.keys.keys()], never)
  for (const [user, { watch }] of visitors.keys) {
    const seen = found.get(user)?.states['watch.seen'] ?? 0
    if (seen !== watch.seen) yield `${user} was seen ${contentOf(seen)} times, not ${watch.seen}`
    const buckets = await table.listEntries(user, 'watch.buckets', never)
    const since = (found.get(user)?.own as { readonly entriesSince?: number } | undefined)?.entriesSince ?? 0
    const held = new Map(
      [...buckets].filter(([, { position }]) => position >= since).map(([name, { value }]) => [name, value]),
    )
    if (contentOf(held) !== contentOf(watch.buckets)) {
      yield `the buckets of ${user} are ${contentOf(held)}, not ${contentOf(watch.buckets)}`
    }
  }
}

/** The last revision of each window, by name, and of those that were taken back none. */
function lastOf(applied: readonly Delivery[], { name }: WindowSpec): ReadonlyMap<string, WindowOutput> {
  const last = new Map<string, WindowOutput>()
  for (const { sink, content } of applied) {
    if (sink !== name) continue
    const output = JSON.parse(content) as WindowOutput
    const window = windowName(output.user, output.startMs, output.endMs)
    if ((last.get(window)?.revision ?? -1) < output.revision) last.set(window, output)
  }
  return new Map([...last].filter(([, { isRetracted }]) => !isRetracted))
}

/** Whether a window, by its name, ends when nobody looks any more. */
const isFar = (window: string, { run }: TimedEvidence): boolean =>
  Number(/, (-?\d+)\)$/.exec(window)?.[1]) >= run.startMs + farMs

/** P4: the late set and final results follow from the source alone, whatever the cuts, retries and reading speeds were. */
function* asTheSourceSays(evidence: TimedEvidence): Iterable<string> {
  const { windows, applied, source, exemption, visitors, run } = evidence
  if (exemption !== undefined) return
  const { redriven } = visitors
  for (const spec of windows) {
    if (!followsFromSource(spec)) continue
    const late = new Set(
      applied
        .filter(({ sink, key }) => sink === `${spec.name}-late` && !redriven.has(key ?? ''))
        .map(({ content }) => (JSON.parse(content) as { hit: string }).hit),
    )
    const wantLate = [...(source.late.get(spec.name) ?? [])].filter(
      (hit) => !redriven.has(source.hits.get(hit)?.user ?? ''),
    )
    for (const hit of wantLate) if (!late.has(hit)) yield `the hit ${hit} should be late for ${spec.name}`
    for (const hit of late) if (!wantLate.includes(hit)) yield `the hit ${hit} should not be late for ${spec.name}`
    const last = lastOf(applied, spec)
    const outcomes = source.outcomes.get(spec.name) ?? new Map<string, string>()
    for (const window of new Set([...last.keys(), ...outcomes.keys()])) {
      if (redriven.has(window.slice(0, window.indexOf(' ')))) continue
      // A day that is not over has had results where each record has one.
      if (spec.emit !== 'on-update' && isFar(window, evidence)) continue
      const output = last.get(window)
      const has = output === undefined ? 'nothing' : amountOf(output)
      const want = outcomes.get(window) ?? 'nothing'
      if (has !== want) yield `${spec.name} of ${window} are ${has}, not ${want}`
    }
  }
  // The release before knew no opening marks: behind a merge of its results' stage they may have been late.
  const hasOldMerge = run.mixesReleases && run.met.has('merge of an internal stream')
  const isCompared = run.hasThirdStage && !run.drawn.changes.stage && redriven.size === 0 && !hasOldMerge
  if (isCompared) yield* totalsAsTheSourceSays(evidence)
}

/** Final results come in time for the windows behind them: none of them is ever late there. */
function* totalsAsTheSourceSays({ applied, source }: TimedEvidence): Iterable<string> {
  const want = new Map<string, { count: number; cents: number }>()
  for (const [window, amount] of source.outcomes.get(finals.name) ?? []) {
    const [, user = '', end = ''] = /^(\S+) .* (-?\d+)\)$/.exec(window) ?? []
    const cents = Number(amount.slice(amount.lastIndexOf(' ') + 1))
    const startMs = Math.floor((Number(end) - 1) / totals.sizeMs) * totals.sizeMs
    const name = windowName(groupOf(user), startMs, startMs + totals.sizeMs)
    const total = want.get(name) ?? { count: 0, cents: 0 }
    want.set(name, { count: total.count + 1, cents: total.cents + cents })
  }
  const last = lastOf(applied, totals)
  for (const window of new Set([...last.keys(), ...want.keys()])) {
    const output = last.get(window)
    const has = output === undefined ? 'nothing' : amountOf(output)
    const wanted = want.get(window)
    const wantText = wanted === undefined ? 'nothing' : amountOf(wanted)
    if (has !== wantText) yield `${totals.name} of ${window} are ${has}, not ${wantText}`
  }
}

/** Without idle clocks that were wrong, no watermark passes the own mark of a record that has not been read yet. */
function* watermarkBehindOwnMarks({ run, hits, results, exemption }: TimedEvidence): Iterable<string> {
  const lines: readonly TimedLine<unknown>[] = [...hits.lines, ...results.lines]
  if (exemption !== undefined || run.streams.inversions > 0) return
  for (const { shard, number, watermarkMs, record } of lines) {
    if (record === undefined || record.redrive !== undefined || watermarkMs <= record.ownMarkMs) continue
    yield `in ${shard.id} the watermark is ${watermarkMs} at ${number}, and the own mark of its record ${record.ownMarkMs}`
  }
}

/** Every window is final once, after deduplication by identity. */
function* finalOnce({ applied, windows }: TimedEvidence): Iterable<string> {
  // Windows of so many records are told apart by nothing but their order.
  const isOnce = ({ emit, graceMs, count }: WindowSpec) =>
    count === undefined && (emit === 'final' || (emit === 'on-close' && graceMs === 0))
  const once = [...windows, totals].filter(isOnce).map(({ name }) => name)
  const counts = new Map<string, number>()
  for (const { sink, content } of applied) {
    if (!once.includes(sink)) continue
    const { user, startMs, endMs, isFinal } = JSON.parse(content) as WindowOutput
    const name = `${sink} of ${windowName(user, startMs, endMs)}`
    if (!isFinal) yield `${name} came before it was final`
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  for (const [name, count] of counts) if (count > 1) yield `${name} was final ${count} times`
}

/** No window closes before its due time: the watermark where its result comes from has reached it. */
function* neverEarly({ applied, windows, hits, results }: TimedEvidence): Iterable<string> {
  const watermarks = new Map<string, number>()
  for (const [stage, { lines }] of [
    [timedNames.keyed, hits],
    [timedNames.second, results],
  ] as const) {
    for (const { slot, number, watermarkMs } of lines) watermarks.set(`${stage}/slot-${slot}/${number}`, watermarkMs)
  }
  for (const { name, emit, graceMs, count } of [...windows, totals]) {
    if (emit === 'on-update' || count !== undefined) continue
    for (const { sink, source, partition, position, content, identity } of applied) {
      if (sink !== name) continue
      const { endMs } = JSON.parse(content) as WindowOutput
      // Behind the number stand the digit of the step's kind and the 39 digits of a hash.
      const watermarkMs = watermarks.get(`${source}/${partition}/${position.slice(0, -40)}`) ?? Number.NEGATIVE_INFINITY
      const dueMs = endMs + (emit === 'final' ? graceMs : 0)
      const isRetracted = content.includes('"isRetracted":true')
      if (!isRetracted && watermarkMs < dueMs) yield `${identity} is due at ${dueMs}, and came at ${watermarkMs}`
    }
  }
}

/** In the stage where a timer fires nothing is late for having waited: what was not due yet when it was set counts in the windows behind. */
function* timersInTime({ applied, windows, visitors }: TimedEvidence): Iterable<string> {
  for (const { name } of windows.filter(({ isBehindTimers }) => isBehindTimers)) {
    for (const { sink, content, identity } of applied) {
      if (sink !== `${name}-late`) continue
      const { user, what } = JSON.parse(content) as Watched
      if (visitors.keys.get(user)?.watch.setInTime.has(what)) yield `${identity} is late: "${what}" of ${user}`
    }
  }
}

/** Nothing is begun once an invocation is past its deadline, however long its process was frozen. The release before this one did. */
function* begunInTime({ run }: TimedEvidence): Iterable<string> {
  if (run.mixesReleases) return
  for (const { identity, isBegunLate } of run.deliveries) {
    if (isBegunLate) yield `${identity} was begun to be delivered behind the deadline of its invocation`
  }
}

/**
 * Who writes each result over the one before of its window, as delivered, ends with the last revision, unless two attempts at a
 * partition ran at once: then the later of them may deliver what the other has delivered before, with more.
 */
function* revisionsInOrder({ run, windows }: TimedEvidence): Iterable<string> {
  if (run.met.has('two invocations of one shard')) return
  for (const { name, count } of [...windows, totals]) {
    if (count !== undefined) continue
    const last = new Map<string, number>()
    const largest = new Map<string, number>()
    for (const { sink, content } of run.deliveries) {
      if (sink !== name) continue
      const { user, startMs, endMs, revision } = JSON.parse(content) as WindowOutput
      const window = windowName(user, startMs, endMs)
      last.set(window, revision)
      largest.set(window, Math.max(largest.get(window) ?? 0, revision))
    }
    for (const [window, revision] of last) {
      const most = largest.get(window)
      if (revision !== most) yield `${name} of ${window}: revision ${revision} came last, and ${most} before`
    }
  }
}

/** P3: of one key never an older output comes behind a newer one; who keeps the greatest number is not misled. */
function* orderPerKey({ applied }: TimedEvidence): Iterable<string> {
  const last = new Map<string, bigint>()
  for (const { sink, key, position } of applied) {
    const name = `${sink} of ${key}`
    if (isAddedSink(sink)) continue
    const [place, before] = [BigInt(position), last.get(name) ?? 0n]
    if (place < before) yield `in ${name} the output at ${place} comes behind the one at ${before}`
    else last.set(name, place)
  }
}

/** Nothing waits without a due entry, at any moment. */
function* dueEntriesKept({ run }: TimedEvidence): Iterable<string> {
  yield* run.stages.dueFindings
}

/**
 * Where no attempt was broken off and no two ran at once, no due entry is left that its watermark has passed. In other runs some
 * may be: of an attempt that died before it deleted them, and of one that put what another had found to be done.
 */
async function* dueEntriesDeleted({ run, hits, results }: TimedEvidence): AsyncIterable<string> {
  // A record that ends its process breaks attempts off in the calmest run.
  if (!run.isCalm || run.met.has('killer')) return
  for (const { name, slots } of [
    { name: timedNames.keyed, slots: visitorSlots },
    { name: timedNames.second, slots: groupSlots },
  ]) {
    if (name === timedNames.second && !run.hasThirdStage) continue
    const { watermarks } = name === timedNames.keyed ? hits : results
    for (let slot = 0; slot < slots; slot++) {
      const shard = [...run.streams.stream(name).shards.values()].find((one) => !one.isClosed && one.slots.has(slot))
      const watermarkMs = watermarks.get(shard?.id ?? '') ?? Number.NEGATIVE_INFINITY
      const page = await run.stages.table(name).readDue(slot, 'event-time', watermarkMs, { limit: 100 }, never)
      for (const { key, timeMs } of page.entries)
        yield `${name} still has the due entry ${timeMs} of ${key}, passed at ${watermarkMs}`
    }
  }
}

/** By their stable names. */
export const timedReferees: { readonly [name: string]: Referee<TimedEvidence> } = {
  drains,
  'no-surprises': noSurprises,
  'due-entries-kept': dueEntriesKept,
  'nothing-lost': nothingLost,
  'one-identity-one-content': oneContent,
  'applied-once': appliedOnce,
  'state-equals-oracle': stateEqualsOracle,
  'watermark-behind-own-marks': watermarkBehindOwnMarks,
  'as-the-source-says': asTheSourceSays,
  'final-once': finalOnce,
  'never-early': neverEarly,
  'timers-in-time': timersInTime,
  'revisions-in-order': revisionsInOrder,
  'begun-in-time': begunInTime,
  'order-per-key': orderPerKey,
  'due-entries-deleted': dueEntriesDeleted,
}
