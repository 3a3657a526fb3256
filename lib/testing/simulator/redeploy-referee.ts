/**
 * What a redeploy adds to the application without time: another state, an operator with a sink, a sink, a stage. Containers of both
 * versions run side by side for a while, and which of them stepped a record is chance; but who committed it is known.
 */
import type { StateValue } from '../../state/state-store.ts'
import type { Evidence } from './evidence.ts'
import type { Line } from './lines.ts'
import { identityOf, type LoggedRecord } from './oracle.ts'
import { contentOf } from './sinks.ts'
import type { CommitNote } from './stages.ts'
import { added, names, type Tally } from './workload.ts'

const never = new AbortController().signal

/** Whether only one version of the application knows a sink. */
export const isAdded = (sink: string): boolean => sink === added.outputs || sink === added.sink

/**
 * A state that only the second version knows has what containers of that version committed, and keeps it while others commit; a
 * sink, an operator and a stage of that version have everything from the first record on that no container of the first met.
 */
export async function* whatARedeployAdds(evidence: Evidence): AsyncIterable<string> {
  const { changes } = evidence.run.drawn
  yield* addedStates(evidence)
  if (changes.sink) yield* addedSink(evidence)
  if (changes.operator) yield* addedOutputs(evidence)
  if (changes.stage && evidence.run.hasThirdStage) yield* addedStage(evidence)
}

/** What each user has of records that the second version committed. */
async function* addedStates({ run, replay }: Evidence): AsyncIterable<string> {
  const { stages, drawn } = run
  if (stages.dynamo !== undefined) return
  const commits = Map.groupBy(
    stages.commits.filter(({ stage }) => stage === names.keyed),
    ({ key }) => key,
  )
  const found = await stages.table(names.keyed).readKeys([...replay.users.keys()], never)
  const lines = Map.groupBy(replay.applied, ({ key }) => key)
  for (const [user, all] of lines) {
    const mine = all.filter(({ number }) => versionOf(commits.get(user) ?? [], number) % 2 === 1)
    const tally: Tally = { user, lines: mine.length, cents: mine.reduce((sum, { value }) => sum + value.cents, 0) }
    const states: { readonly [name: string]: StateValue } = found.get(user)?.states ?? {}
    const visits = states['ledger.visits'] ?? 0
    if (visits !== tally.lines)
      yield `${user} has ${contentOf(visits)} visits, and the second version committed ${tally.lines}`
    const later = states[added.operator] ?? { ...tally, lines: 0, cents: 0 }
    if (drawn.changes.operator && contentOf(later) !== contentOf(tally)) {
      yield `${added.operator} of ${user} is ${contentOf(later)}, and the second version committed ${contentOf(tally)}`
    }
  }
}

/** The version of the commit that holds a number. */
const versionOf = (commits: readonly CommitNote[], number: number): number =>
  commits.find(({ readPosition, position }) => readPosition < number && number <= position)?.version ?? 0

/** Orders that came after the last container of the first version was busy. */
function* addedSink({ run, entries, applied, source, killed }: Evidence): Iterable<string> {
  const oldUntilMs = run.oldUntilMs(names.source)
  const got = new Set(applied.filter(({ sink }) => sink === added.sink).map(({ key }) => key))
  for (const { index, arrivalMs, shard, sequenceNumber } of run.sent) {
    const isKilled = killed.has(`${names.source}/${shard}/${sequenceNumber}/0`)
    const order = entries[index]?.order?.order
    if (isKilled || arrivalMs <= oldUntilMs || order === undefined || !source.orders.has(order) || got.has(order))
      continue
    yield `${added.sink} has not got ${order}, which no container of the first version met`
  }
}

function* addedOutputs({ run, replay, applied }: Evidence): Iterable<string> {
  const got = new Set(applied.filter(({ sink }) => sink === added.outputs).map(({ identity }) => identity))
  for (const record of metByTheSecond(replay.applied, run.oldUntilMs(names.keyed))) {
    if (got.has(identityOf(added.outputs, record))) continue
    yield `${added.outputs} has not got line ${record.value.line}, which no container of the first version met`
  }
}

function* addedStage({ run, replay, sold }: Evidence): Iterable<string> {
  const arrived = new Set(
    sold.records
      .filter(({ isDenied }) => !isDenied)
      .map(({ value: { item, line, cents, total } }) => contentOf({ item, line, cents, total })),
  )
  const froms = new Set(metByTheSecond(replay.applied, run.oldUntilMs(names.keyed)))
  for (const { content, from } of replay.sent) {
    if (froms.has(from) && !arrived.has(content))
      yield `the third stage has not got ${content}, which no container of the first version met`
  }
}

const metByTheSecond = (records: readonly LoggedRecord<Line>[], oldUntilMs: number): LoggedRecord<Line>[] =>
  records.filter(({ arrivalMs }) => arrivalMs > oldUntilMs)
