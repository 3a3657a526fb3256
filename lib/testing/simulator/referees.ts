/**
 * The referees: each looks at a finished run for one promise, by name, and says what breaks it.
 *
 * They know the source, the streams, the tables and the deliveries. What must have come out they take from the oracle,
 * which shares no code with the runtime.
 */
import type { StateValue } from '../../state/state-store.ts'
import type { Evidence } from './evidence.ts'
import type { Referee } from './findings.ts'
import { deadLetterId, type LoggedRecord } from './oracle.ts'
import { isAdded, whatARedeployAdds } from './redeploy-referee.ts'
import type { Simulation } from './simulation.ts'
import { contentOf } from './sinks.ts'
import { added, itemSlots, names, userSlots } from './workload.ts'

const never = new AbortController().signal

/** P7: once nothing fails any more, everything comes to its end within 30 virtual minutes. */
export function* drains({ run }: { readonly run: Simulation }): Iterable<string> {
  if (run.drainedAfterMs !== undefined) return
  yield `after ${run.drainLimitMs / 60_000} minutes without faults these are not done: ${run.leftOver.join(', ')}`
}

/** Runners reject and return only with errors that say what becomes of the records; an invariant of ours never breaks. */
export function* noSurprises({ run }: { readonly run: Simulation }): Iterable<string> {
  yield* run.surprises
}

/** P1: each record of the source is applied, or a dead letter with its original bytes; each of its lines once. */
function* nothingLost(evidence: Evidence): Iterable<string> {
  const { run, entries, lines, source, deadLetters, killed, sentAt, applied } = evidence
  const dead = new Set(deadLetters.map(({ letter }) => letter.payload))
  for (const payload of source.dead) {
    if (!dead.has(payload)) yield `no dead letter has the record ${Buffer.from(payload, 'base64')}`
  }
  const killedOrders = new Set<number>()
  for (const { shard, sequenceNumber, index } of run.sent) {
    if (killed.has(`${names.source}/${shard}/${sequenceNumber}/0`)) killedOrders.add(index)
  }
  const seen = new Set(applied.filter(({ sink }) => sink === 'seen-orders').map(({ key }) => key))
  const arrived = new Map<string, number>()
  for (const { origin, value } of lines.records) {
    const order = entries[sentAt.get(`${origin.partition}/${origin.position}`) ?? -1]?.order
    const name = `${order?.order} ${value.line}`
    arrived.set(name, (arrived.get(name) ?? 0) + 1)
  }
  for (const [index, { order }] of entries.entries()) {
    if (order === undefined || order.fails !== 'never' || killedOrders.has(index)) continue
    if (!seen.has(order.order)) yield `${order.order} did not reach the sink of the first stage`
    for (const { line } of order.lines) {
      const count = arrived.get(`${order.order} ${line}`) ?? 0
      if (count !== 1) yield `line ${line} of ${order.order} came ${count} times to the keyed stage`
    }
  }
  const { crash, zombie, failOver, redelivery } = run.drawn
  if (crash + zombie + failOver + redelivery === 0) {
    for (const id of killed) yield `${id} was taken for what ended a process, and it was not`
  }
  for (const { stage, shard, number, upstream, origin } of deniedWithoutReason(evidence)) {
    yield `record ${number} of ${stage}/${shard}, from ${upstream} and at first ${origin.partition}/${origin.position}, is dropped: a frame before it claims that nothing was sent there`
  }
  for (const name of arrived.keys()) if (!source.lines.has(name)) yield `the line ${name} was never sent`
}

/**
 * Records behind a frame that claims their place was empty, so nobody applies them. That may be where the claim is right by the time
 * it is made: what was sent there was given up since, or comes from a version of the application with a stage that others lack.
 */
function deniedWithoutReason(evidence: Evidence): readonly LoggedRecord<unknown>[] {
  const { run, lines, killed } = evidence
  const denied = lines.records.filter(
    ({ isDenied, origin }) => isDenied && !killed.has(`${names.source}/${origin.partition}/${origin.position}/0`),
  )
  if (run.drawn.changes.stage) return denied
  return [...denied, ...soldByApplied(evidence).filter(({ isDenied }) => isDenied)]
}

/** P2: the state of every key is what one record after the other makes of it, in the order of the log. */
async function* stateEqualsOracle({ run, replay }: Evidence): AsyncIterable<string> {
  const table = run.stages.table(names.keyed)
  const users = [...replay.users.keys()]
  const found = await table.readKeys(users, never)
  for (const [user, state] of replay.users) {
    const { states = {} } = found.get(user) ?? {}
    const items = await table.listEntries(user, 'ledger.items', never)
    const held = new Map([...items].map(([item, { value }]) => [item, value] as const))
    const tally = { user, lines: state.lines, cents: state.sum }
    const want: Record<string, unknown> = {
      'ledger.total': state.total,
      'ledger.recent': state.recent,
      'ledger.biggest': state.biggest,
      'ledger.mean': { sum: state.sum, count: state.lines },
      'on-update': tally,
      'per-batch': tally,
    }
    for (const [name, value] of Object.entries(want)) {
      if (!isSame(states[name], value))
        yield `${name} of ${user} is ${contentOf(states[name])}, not ${contentOf(value)}`
    }
    const wantItems = new Map([...state.items].sort(([a], [b]) => (a < b ? -1 : 1)))
    if (!isSame(held, wantItems)) yield `ledger.items of ${user} are ${contentOf(held)}, not ${contentOf(wantItems)}`
    const once = await table.listEntries(user, 'once', never)
    if (once.size > 0 && once.size !== state.once.size)
      yield `${user} remembers ${once.size} lines, not ${state.once.size}`
  }
  if (run.hasThirdStage) yield* thirdStage(run.stages.table(names.second), replay.items, run.drawn.ttl > 0)
}

async function* thirdStage(
  table: {
    readKeys(
      keys: readonly string[],
      signal: AbortSignal,
    ): Promise<ReadonlyMap<string, { readonly states: { readonly [name: string]: StateValue } }>>
  },
  items: ReadonlyMap<string, { readonly lines: number; readonly cents: number }>,
  mayBeTaken: boolean,
): AsyncIterable<string> {
  const found = await table.readKeys([...items.keys()], never)
  for (const [item, { lines, cents }] of items) {
    if (mayBeTaken && !found.has(item)) continue
    const states = found.get(item)?.states ?? {}
    const has = { lines: states['stock-of-item.lines'], cents: states['stock-of-item.cents'] }
    if (!isSame(has, { lines, cents }))
      yield `the stock of ${item} is ${contentOf(has)}, not ${contentOf({ lines, cents })}`
  }
}

const isSame = (a: unknown, b: unknown): boolean => contentOf(a) === contentOf(b)

/** P3: over everything that was ever delivered, one identity has one content: in sinks, frames and dead letters. */
function* oneContent({ run, lines, sold, deadLetters }: Evidence): Iterable<string> {
  yield* lines.contradictions
  yield* sold.contradictions
  const contents = new Map<string, string>()
  for (const { sink, identity, content } of run.deliveries) {
    // What an operator says that the other version does not know depends on who committed what.
    if (sink === 'dead-letters' || sink === added.outputs) continue
    const first = contents.get(identity)
    if (first === undefined) contents.set(identity, content)
    else if (first !== content) yield `${identity} has the contents ${first} and ${content}`
  }
  const letters = new Map<string, string>()
  for (const { identity, letter } of deadLetters) {
    const content = `${letter.id} ${letter.payload}`
    const first = letters.get(identity)
    if (first === undefined) letters.set(identity, content)
    else if (first !== content) yield `the dead letter ${identity} has the contents ${first} and ${content}`
  }
}

/**
 * Whether an output comes from a record that was wrongly taken for what ended the process: an attempt before may have published
 * it (docs/guarantees.md).
 */
export function isOfKilled(identity: string, killed: ReadonlySet<string>): boolean {
  if (killed.size === 0) return false
  const [, record] = /^[^:]*:(.*)10{39}\/\d+\/\d+$/.exec(identity) ?? []
  return record !== undefined && killed.has(record)
}

/** What came to the third stage, but for what such a record sent there. */
function soldByApplied({ lines, sold, killed }: Evidence): Evidence['sold']['records'] {
  const placeAt = (upstream: string, number: number) => `${upstream}@${number}`
  const accused = new Set(
    lines.records
      .filter((record) => killed.has(deadLetterId(record)))
      .map(({ stage, shard, number }) => placeAt(`${stage}/${shard}`, number)),
  )
  return sold.records.filter(({ upstream, sentAt: [number] }) => !accused.has(placeAt(upstream, number)))
}

/** P3: who applies each identity once has exactly the outputs of the sequential fold, in sinks and in the third stage. */
function* appliedOnce(evidence: Evidence): Iterable<string> {
  const { run, replay, applied, deadLetters, killed } = evidence
  const got = new Map(
    applied
      .filter(({ sink }) => sink !== 'seen-orders' && !isAdded(sink))
      .map(({ identity, content }) => [identity, content]),
  )
  for (const [identity, content] of replay.outputs) {
    if (got.get(identity) !== content) yield `${identity} is ${got.get(identity) ?? 'missing'}, not ${content}`
  }
  for (const [identity, content] of got) {
    if (replay.outputs.has(identity)) continue
    if (isOfKilled(identity, killed)) continue
    const interim = replay.interim.get(identity)
    if (interim === undefined) yield `${identity} should not be there: ${content}`
    else if (interim !== content) yield `${identity} is ${content}, not ${interim}`
  }
  for (const [key, identity] of replay.lastInterim) {
    if (!got.has(identity)) yield `the last result of ${key} is missing: ${identity}`
  }
  const letters = new Set(deadLetters.map(({ letter }) => letter.id))
  for (const id of replay.dead.map(deadLetterId)) if (!letters.has(id)) yield `the dead letter ${id} is missing`
  for (const id of replay.rejected.map(deadLetterId)) {
    // One output of such a record is refused. The release before gave it the id of the record.
    const isThere = letters.has(`${id}/firsts/0`) || (run.mixesReleases && letters.has(id))
    if (!isThere) yield `the dead letter of an output of ${id} is missing`
  }
  if (!run.hasThirdStage) return
  const sent = counted(replay.sent.map(({ content }) => content))
  const arrived = counted(
    soldByApplied(evidence).map(({ value: { item, line, cents, total } }) => contentOf({ item, line, cents, total })),
  )
  for (const content of new Set([...sent.keys(), ...arrived.keys()])) {
    const [want, has] = [sent.get(content) ?? 0, arrived.get(content) ?? 0]
    // A stage that a redeploy adds has nothing of what went before: see what-a-redeploy-adds.
    if (run.drawn.changes.stage ? has > want : want !== has)
      yield `the third stage has ${content} ${has} times, not ${want}`
  }
}

function counted(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

/** P4: records of one key come in the order of each upstream, parents before children; what was overtaken was not our doing. */
function* orderPerKey({ run, entries, lines, sold, sentAt, applied }: Evidence): Iterable<string> {
  // A stage that a redeploy adds: versions without it send it nothing, so what a zombie of one with it sends comes late.
  const sent = run.drawn.changes.stage ? [] : sold.records
  const all: readonly LoggedRecord<unknown>[] = [...lines.records, ...sent]
  const overtaken = all.filter(({ isOvertaken }) => isOvertaken)
  if (overtaken.length > run.streams.inversions * 100) {
    yield `${overtaken.length} records were overtaken in ${run.streams.inversions} inversions`
  }
  const last = new Map<string, number>()
  // A child of a shard waits for it. A partition that is added has no parent, and takes keys that others had.
  const isMoved = run.met.has('partition added to the source')
  for (const { key, origin, isOvertaken } of lines.records) {
    if (isOvertaken) continue
    const index = sentAt.get(`${origin.partition}/${origin.position}`) ?? -1
    const name = `${key} of ${entries[index]?.account}${isMoved ? ` in partition ${origin.partition}` : ''}`
    const before = last.get(name) ?? -1
    if (before > index) yield `for ${name} record ${index} comes behind record ${before}`
    last.set(name, Math.max(before, index))
  }
  const delivered = new Map<string, bigint>()
  for (const { sink, key, partition, position } of applied) {
    // Of interim results other cuts publish others, also late: whoever keeps the greatest number is not misled.
    if (sink === 'seen-orders' || sink === 'latest' || isAdded(sink)) continue
    const name = `${sink}, ${partition}, ${key}`
    const [place, before] = [BigInt(position), delivered.get(name) ?? 0n]
    if (before > place) yield `in ${name} the output at ${place} comes behind the one at ${before}`
    else delivered.set(name, place)
  }
}

/** P4: sums, counts and largest values follow from the source alone, whatever the cuts, retries and reading speeds were. */
async function* independentOfCuts({ run, source, killed }: Evidence): AsyncIterable<string> {
  // What crashes have hit three times in a row before its step was over is taken for a killer: the source does not know that.
  if (killed.size > 0) return
  const found = await run.stages.table(names.keyed).readKeys([...source.users.keys()], never)
  for (const [user, want] of source.users) {
    const { states = {} } = found.get(user) ?? {}
    const has = {
      total: states['ledger.total'],
      biggest: states['ledger.biggest'],
      mean: states['ledger.mean'],
      tally: states['on-update'],
    }
    const { lines, cents, biggest } = want
    const wanted = { total: cents, biggest, mean: { sum: cents, count: lines }, tally: { user, lines, cents } }
    if (!isSame(has, wanted)) yield `${user} has ${contentOf(has)}, and the source says ${contentOf(wanted)}`
  }
}

/** P5: an invocation, cold or warm, reads its progress and the keys of its batch; nothing is restored. */
function* nothingRestored({ run }: Evidence): Iterable<string> {
  for (const usage of run.stages.usages) {
    const { stage, shardId, partitions, foreignKeys, touched, keysRead, conflicts, progressReads } = usage
    const { listings, audits } = usage
    const where = `an invocation for ${stage}/${shardId}`
    if (foreignKeys.size > 0) yield `${where} read keys that its batch does not touch: ${[...foreignKeys].join(', ')}`
    // Once each, and again where others write at the same time; a step may miss an entry more than once.
    const mostReads = touched.size * 4 + conflicts * 4 + 8
    if (keysRead > mostReads) yield `${where} read ${keysRead} key items for ${touched.size} keys`
    if (listings > audits * 6 + conflicts * 6)
      yield `${where} listed ${listings} maps for ${audits} lines that read one`
    const ancestors = run.streams.stream(stage).shards.size
    if (progressReads > 4 * partitions + ancestors) yield `${where} read progress ${progressReads} times`
  }
}

/** Items and progress stay small however long a run goes on. */
function* bounded({ run }: Evidence): Iterable<string> {
  const { progressBytes, keyItemBytes, entryBytes, keyItem } = run.stages.largest
  const upstreams = run.streams.all.map(({ name }) => run.streams.stream(name).shards.size)
  const mostProgress = 2_048 + 8 * Math.max(userSlots, itemSlots) * Math.max(...upstreams)
  if (progressBytes > mostProgress) yield `progress takes ${progressBytes} bytes, and may take ${mostProgress}`
  if (keyItemBytes > 2_048) yield `the item of ${keyItem} takes ${keyItemBytes} bytes`
  if (entryBytes > 64) yield `an entry takes ${entryBytes} bytes`
}

/** In runs without faults: one write unit per key and batch, a transaction where entries change, one read unit per cold key. */
function* unitsWithinBudget({ run }: Evidence): Iterable<string> {
  const { dynamo, usages } = run.stages
  if (dynamo === undefined || run.drawn.any) return
  const { read, write } = run.stages.units
  let [mostRead, mostWrite] = [0, 0]
  for (const { partitions, touched, touchedEntries, audits, progressWrites } of usages) {
    // A key with entries is a transaction, which counts twice; progress takes up to 3 KB here.
    mostRead += 4 * partitions + touched.size + touchedEntries.size + audits * 2
    mostWrite += (touched.size + touchedEntries.size) * 2 + progressWrites * 3
  }
  if (read > mostRead) yield `${read} read units were used, and the budget is ${mostRead}`
  if (write > mostWrite) yield `${write} write units were used, and the budget is ${mostWrite}`
}

/** By their stable names. */
export const referees: { readonly [name: string]: Referee<Evidence> } = {
  drains,
  'no-surprises': noSurprises,
  'nothing-lost': nothingLost,
  'state-equals-oracle': stateEqualsOracle,
  'one-identity-one-content': oneContent,
  'applied-once': appliedOnce,
  'order-per-key': orderPerKey,
  'independent-of-cuts': independentOfCuts,
  'nothing-restored': nothingRestored,
  'bounded-items-and-progress': bounded,
  'units-within-budget': unitsWithinBudget,
  'what-a-redeploy-adds': whatARedeployAdds,
}
