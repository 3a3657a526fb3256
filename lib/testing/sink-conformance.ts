/**
 * The rules of `lib/runtime/sink.ts` as checks that any sink can be held to, under any test runner.
 *
 * Every check makes its own sink, writes {@link Probe}s to it and reads back what the outside world holds. A check throws
 * a {@link ConformanceError} that names the rule.
 */
import { isDeepStrictEqual } from 'node:util'
import { MillraceError } from '../core/errors.ts'
import { SourceRecord } from '../core/record.ts'
import type { Outcome, Output, Sink } from '../runtime/sink.ts'

/** What the checks write: `n` counts the values of a key from 1. */
export interface Probe {
  readonly key: string
  readonly n: number
}

/** A refusal by the outside world that passes by itself, such as a throttle. */
export interface Refusal {
  /** Of which key an output is refused. */
  readonly key: string
  /** How many attempts in a row. */
  readonly times: number
  /** To be called at each of these attempts, before it is answered. */
  readonly refused: () => void
}

/** A fresh sink with an empty world behind it. Its clock must not wait: a delay passes at once or in virtual time. */
export interface SinkUnderTest {
  readonly sink: Sink<Probe, unknown>
  /** Every probe that the outside world took, in its order; of a table, only the present one of each key. */
  stored(): Promise<readonly Probe[]>
  /** Whether the outside world keeps every probe or the latest of each key. @default 'every' */
  readonly keeps?: 'every' | 'latest'
  /** True where an output that comes again is applied once. */
  readonly idempotent: boolean
  /** Plans a refusal. A sink that cannot be refused anything is checked with `refusals: false`. */
  refuse?(refusal: Refusal): void
  /** Resolves when whatever the sink left in flight has reached the outside world. @default a few turns of the loop */
  settle?(): Promise<void>
}

/** One check: `run` rejects where the sink breaks the rule. */
export interface ConformanceCheck {
  readonly name: string
  run(): Promise<void>
}

/** A sink that breaks a rule, with the rule and what was seen. Its code is `sink-conformance`. */
export class ConformanceError extends MillraceError {
  override readonly name: string = 'ConformanceError'

  constructor(message: string) {
    super('sink-conformance', message)
  }
}

type Check = (world: SinkUnderTest) => Promise<void>

function demand(condition: boolean, message: string): asserts condition {
  if (!condition) throw new ConformanceError(message)
}

/** One output per probe, each of an input record of its own, in the order of their positions. */
function outputsOf(probes: readonly Probe[]): Output<Probe>[] {
  return probes.map((value, place) => {
    const position = String(place + 1)
    const fields = { source: 'conformance', partition: 'partition-0', arrivalTimeMs: 0, payload: null, position }
    return { value, key: value.key, record: new SourceRecord(fields), index: 0 }
  })
}

const probesOf = (keys: readonly string[], count: number): Probe[] =>
  Array.from({ length: count }, (_, i) => keys.map((key) => ({ key, n: i + 1 }))).flat()

const holds = (stored: readonly Probe[], { key, n }: Probe, keeps: SinkUnderTest['keeps']): boolean =>
  stored.some((probe) => probe.key === key && (keeps === 'latest' ? probe.n >= n : probe.n === n))

const show = (probes: readonly Probe[]): string => probes.map(({ key, n }) => `${key}${n}`).join(' ') || 'nothing'

async function deliverTo(
  { sink }: SinkUnderTest,
  outputs: readonly Output<Probe>[],
  signal = new AbortController().signal,
): Promise<readonly Outcome[]> {
  const outcomes = await sink.deliver(
    outputs.map((output) => sink.prepare(output)),
    { signal },
  )
  demand(
    Array.isArray(outcomes) && outcomes.length === outputs.length,
    `rule 2: deliver answered ${outcomes?.length} outcomes for ${outputs.length} items`,
  )
  for (const outcome of outcomes) {
    const known = outcome.status === 'delivered' || outcome.status === 'retry' || outcome.status === 'rejected'
    demand(known, `rule 2: an outcome has the status ${JSON.stringify(outcome.status)}`)
    demand(outcome.status === 'delivered' || outcome.error instanceof Error, `rule 2: "${outcome.status}" has no error`)
  }
  return outcomes
}

async function settle(world: SinkUnderTest): Promise<void> {
  if (world.settle) return world.settle()
  for (let turn = 0; turn < 100; turn++) await Promise.resolve()
}

/** What is stored right after an answer must bear it out, and what was not delivered must not arrive behind it. */
async function demandBorneOut(world: SinkUnderTest, probes: readonly Probe[], outcomes: readonly Outcome[]) {
  const before = await world.stored()
  for (const [i, probe] of probes.entries()) {
    const claimed = outcomes[i]?.status === 'delivered'
    const borneOut = !claimed || holds(before, probe, world.keeps)
    demand(borneOut, `rule 2: ${show([probe])} is called delivered, but stored is ${show(before)}`)
  }
  await settle(world)
  const after = await world.stored()
  demand(
    isDeepStrictEqual(before, after),
    `rule 5: after deliver had answered, the outside world went from ${show(before)} to ${show(after)}`,
  )
}

const checkPreparation: Check = async (world) => {
  const [first, second] = outputsOf([
    { key: 'a', n: 1 },
    { key: 'b', n: 1 },
  ]) as [Output<Probe>, Output<Probe>]
  Object.freeze(first.value)
  const once = world.sink.prepare(first)
  world.sink.prepare(second)
  const again = world.sink.prepare(first)
  const isPromise = typeof (once as { then?: unknown } | null | undefined)?.then === 'function'
  demand(!isPromise, 'rule 1: prepare returned a promise, but it runs inside the step')
  demand(isDeepStrictEqual(once, again), 'rule 1: prepare made two different items of one output')
  await settle(world)
  const stored = await world.stored()
  demand(stored.length === 0, `rule 1: prepare stored ${show(stored)}; only deliver may`)
}

const checkEmptyBatch: Check = async (world) => {
  await deliverTo(world, [])
  const stored = await world.stored()
  demand(stored.length === 0, `rule 2: an empty batch stored ${show(stored)}`)
}

const checkDelivery: Check = async (world) => {
  const probes = probesOf(['a', 'b', 'c', 'd', 'e'], 3)
  const outcomes = await deliverTo(world, outputsOf(probes))
  const failed = outcomes.find((outcome) => outcome.status !== 'delivered')
  demand(!failed, `rule 2: with nothing in the way an item was answered "${failed?.status}"`)
  await demandBorneOut(world, probes, outcomes)
  demandOrder(await world.stored(), ['a', 'b', 'c', 'd', 'e'], 3, world.keeps)
}

/** Per key, with repeats left out, 1 to `count` in order (or `count` alone, where only the latest is kept). */
function demandOrder(stored: readonly Probe[], keys: readonly string[], count: number, keeps: SinkUnderTest['keeps']) {
  const all = Array.from({ length: count }, (_, i) => i + 1)
  const expected = keeps === 'latest' ? [count] : all
  for (const key of keys) {
    const numbers = [...new Set(stored.filter((probe) => probe.key === key).map(({ n }) => n))]
    demand(
      isDeepStrictEqual(numbers, expected),
      `rule 3: key ${key} was sent as ${all} and is stored as ${numbers.join(',') || 'nothing'}`,
    )
  }
}

/** Of one key, whatever stands behind an item that was not delivered is neither delivered nor stored. */
async function demandNoOvertaking(world: SinkUnderTest, probes: readonly Probe[], outcomes: readonly Outcome[]) {
  const stored = await world.stored()
  for (const [i, probe] of probes.entries()) {
    if (outcomes[i]?.status !== 'retry') continue
    const later = probes.filter(({ key, n }, j) => key === probe.key && n > probe.n && j > i)
    const overtaker = later.find((other) => holds(stored, other, world.keeps))
    demand(!overtaker, `rule 3: ${overtaker && show([overtaker])} overtook ${show([probe])}, which was refused`)
  }
}

const idleRefusals = 'the sink under test never called `refused`: its refusals do not work'

const checkOrderUnderRefusals =
  (times: number): Check =>
  async (world) => {
    const keys = ['a', 'b', 'c']
    const probes = probesOf(keys, 3)
    const outputs = outputsOf(probes)
    let refusals = 0
    world.refuse?.({ key: 'b', times, refused: () => refusals++ })
    // As the runtime does: whatever is not delivered goes back, with everything behind it.
    let from = 0
    for (let round = 0; from < outputs.length; round++) {
      demand(round < 20, 'rule 2: twenty deliveries did not get a batch through that was refused a few times')
      const outcomes = await deliverTo(world, outputs.slice(from))
      await demandBorneOut(world, probes.slice(from), outcomes)
      await demandNoOvertaking(world, probes.slice(from), outcomes)
      const stuck = outcomes.findIndex((outcome) => outcome.status !== 'delivered')
      from = stuck === -1 ? outputs.length : from + stuck
    }
    demand(refusals > 0, idleRefusals)
    demandOrder(await world.stored(), keys, 3, world.keeps)
  }

const checkRepetition: Check = async (world) => {
  const keys = ['a', 'b']
  const probes = probesOf(keys, 3)
  const outputs = outputsOf(probes)
  await deliverTo(world, outputs)
  const once = await world.stored()
  const repeated = outputs.slice(0, 4)
  const outcomes = await deliverTo(world, repeated)
  const refused = outcomes.find((outcome) => outcome.status !== 'delivered')
  demand(!refused, `rule 4: an output that came again was answered "${refused?.status}"`)
  const twice = await world.stored()
  demand(
    !world.idempotent || isDeepStrictEqual(once, twice),
    `rule 4: the sink is called idempotent, but outputs that came again turned ${show(once)} into ${show(twice)}`,
  )
  await deliverTo(world, outputs)
  demandOrder(await world.stored(), keys, 3, world.keeps)
}

const checkAbortedFromTheStart: Check = async (world) => {
  const probes = probesOf(['a', 'b'], 2)
  const outcomes = await deliverTo(world, outputsOf(probes), AbortSignal.abort())
  const started = outcomes.findIndex((outcome) => outcome.status !== 'retry')
  demand(started === -1, `rule 5: after the abort item ${started} was answered "${outcomes[started]?.status}"`)
  await settle(world)
  const stored = await world.stored()
  demand(stored.length === 0, `rule 5: after the abort the sink still stored ${show(stored)}`)
}

/** More than any sink has in flight when the abort comes. */
const mostRefusals = 1_000

const checkAbortedMidway: Check = async (world) => {
  const probes = probesOf(['a', 'b', 'c', 'd'], 3)
  const controller = new AbortController()
  let refusals = 0
  const refused = (): void => {
    controller.abort()
    // A sink that never stops would hang the test instead of failing it.
    demand(++refusals <= mostRefusals, `rule 5: the sink went on after the abort and was refused ${refusals} times`)
  }
  world.refuse?.({ key: 'c', times: Number.POSITIVE_INFINITY, refused })
  const outcomes = await deliverTo(world, outputsOf(probes), controller.signal)
  demand(controller.signal.aborted, idleRefusals)
  demand(refusals <= mostRefusals, 'rule 5: the sink went on after the abort')
  for (const [i, { key }] of probes.entries()) {
    const answer = outcomes[i]?.status
    demand(key !== 'c' || answer === 'retry', `rule 5: an item that is refused was answered "${answer}", not "retry"`)
  }
  await demandBorneOut(world, probes, outcomes)
  await demandNoOvertaking(world, probes, outcomes)
}

/**
 * The checks for one sink. `make` is called once per check and gives a sink with an empty world. `refusals: false` leaves
 * out the checks that need the outside world to refuse something.
 *
 * @example
 * for (const { name, run } of sinkConformance('webhook', { make: makeWebhookWorld })) test(name, run)
 */
export function sinkConformance(
  name: string,
  { make, refusals = true }: { make(): Promise<SinkUnderTest>; refusals?: boolean },
): readonly ConformanceCheck[] {
  const checks: [rule: string, check: Check][] = [
    ['prepare is synchronous, pure and stores nothing', checkPreparation],
    ['an empty batch is answered by no outcomes', checkEmptyBatch],
    ['every item has its outcome, and what is delivered is stored', checkDelivery],
    ['an output that comes again is applied once, or at least in order', checkRepetition],
    ['after an abort nothing starts', checkAbortedFromTheStart],
  ]
  if (refusals) {
    checks.push(
      ['nothing of a key overtakes an item that was refused once', checkOrderUnderRefusals(1)],
      ['nothing of a key overtakes an item that was refused again and again', checkOrderUnderRefusals(5)],
      ['an abort midway awaits what is in flight and returns the rest', checkAbortedMidway],
    )
  }
  return checks.map(([rule, check]) => ({
    name: `${name}: ${rule}`,
    async run() {
      const world = await make()
      if (refusals) demand(world.refuse !== undefined, 'the sink under test has no `refuse`: pass { refusals: false }')
      await check(world)
    },
  }))
}
