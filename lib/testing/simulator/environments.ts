/**
 * Lambda in a run: execution environments, each with a runner and ports of its own, and the invoker that a mapping calls.
 *
 * 1. An environment runs one invocation at a time. A later one may find it warm, with whatever it has in its cache,
 *    however many others wrote meanwhile.
 * 2. A crash takes the environment with everything it waited for. At its time limit an invocation crashes.
 * 3. A zombie is an invocation whose mapping has given up: it goes on, in some runs after a long sleep, and its answer is
 *    nobody's.
 */
import { describeError } from '../../core/errors.ts'
import { SourceRecord } from '../../core/record.ts'
import type {
  InvocationOutcome,
  Invoker,
  SourceRecord as MappedRecord,
} from '../../emulator/event-source-mapping/index.ts'
import type { PartitionFailure } from '../../runtime/batch.ts'
import type { Runner } from '../../runtime/runner.ts'
import type { Faults } from './faults.ts'
import type { AnswerKind } from './mapped.ts'
import type { Random } from './random.ts'
import { newOwner, type Owner, type Scheduler } from './scheduler.ts'

/**
 * What a mapping hands over: records of one shard, or of several partitions of a topic, whose name is then `shardId`. They are not yet
 * in the form of any service's event.
 */
export interface BatchEvent {
  readonly shardId: string
  readonly records: readonly MappedRecord[]
}

export interface Environment {
  readonly owner: Owner
  readonly stage: string
  readonly version: number
  readonly runner: Runner
  invocation: Invocation | undefined
  /** Whether it has run something. */
  hasServed: boolean
}

export interface Invocation {
  readonly shardId: string
  readonly records: readonly MappedRecord[]
  /** Whether the environment had served another one before. */
  readonly isWarm: boolean
  /** Answers the mapping; what comes second is heard by nobody. */
  answer(outcome: InvocationOutcome): void
  isZombie: boolean
}

export interface EnvironmentsOptions {
  readonly scheduler: Scheduler
  readonly random: Random
  readonly faults: () => Faults
  /** Makes the runner of a stage, with the ports of one environment. */
  readonly makeRunner: (stage: string, owner: Owner, version: number) => Runner
  /** Told of every invocation as it begins. */
  readonly onBegin: (environment: Environment, invocation: Invocation) => void
  /** Told what a run rejected with: nothing but what says it may succeed later is expected. */
  readonly onError: (environment: Environment, error: unknown) => void
  readonly onCount: (name: string) => void
  /** For which mapping functions answer. */
  readonly answers: AnswerKind
}

const timeLimitMs = 60_000

export class Environments {
  /** The version of the topology that new environments run. */
  version = 0
  /** By stage, when an environment of the first version was busy last. */
  readonly oldUntilMs = new Map<string, number>()
  readonly #options: EnvironmentsOptions
  #alive: Environment[] = []
  #made = 0
  /** By stage, shard and first record, how many records were in the last batch. */
  readonly #sizes = new Map<string, number>()
  /** Batches that ended with an error. */
  readonly #failed = new Set<string>()

  constructor(options: EnvironmentsOptions) {
    this.#options = options
  }

  get busy(): readonly Environment[] {
    return this.#alive.filter(({ invocation }) => invocation !== undefined)
  }

  /** The environment that an owner is the name of. */
  of(owner: Owner): Environment | undefined {
    return this.#alive.find((environment) => environment.owner === owner)
  }

  /** The invoker of a stage's mapping. */
  invoker(stage: string, source: string): Invoker {
    return {
      invoke: (event) => {
        const { shardId, records } = event as BatchEvent
        return this.invoke(stage, source, shardId, records)
      },
    }
  }

  invoke(stage: string, source: string, shardId: string, records: readonly MappedRecord[]): Promise<InvocationOutcome> {
    const { scheduler } = this.#options
    const { promise, resolve } = Promise.withResolvers<InvocationOutcome>()
    const environment = this.#take(stage)
    const isWarm = environment.hasServed
    const invocation: Invocation = { shardId, records, isWarm, answer: resolve, isZombie: false }
    environment.hasServed = true
    this.#countBatch(environment, invocation)
    environment.invocation = invocation
    this.#options.onBegin(environment, invocation)
    const { owner } = environment
    scheduler.note(owner.name, () => `begins ${shardId}, ${records.length} records${isWarm ? ', warm' : ''}`)
    const cancel = scheduler.timer(owner, timeLimitMs, () => {
      if (environment.invocation !== invocation) return
      this.#options.onCount('time limit')
      this.kill(environment, 'timed out')
    })
    const finish = (outcome: InvocationOutcome) => {
      cancel()
      if (owner.isDead) return
      environment.invocation = undefined
      this.#noteOld(environment)
      this.#noteOutcome(environment, invocation, outcome)
      invocation.answer(outcome)
    }
    // The run begins at a point of its own, so that the mapping's code and the runner's never share a step.
    scheduler
      .call(owner, 'run', () => undefined)
      .then(() => this.#run(environment, source, invocation))
      .then(finish)
    return promise
  }

  async #run(environment: Environment, source: string, invocation: Invocation): Promise<InvocationOutcome> {
    const { scheduler } = this.#options
    const { owner, runner } = environment
    const { records } = invocation
    const batches = [...byPartition(invocation)].map(([partition, own]) => ({
      partition,
      records: own.map(
        ({ sequenceNumber, arrivalMs, partitionKey, data }) =>
          new SourceRecord({
            source,
            partition,
            position: sequenceNumber,
            arrivalTimeMs: arrivalMs,
            key: partitionKey,
            payload: data,
          }),
      ),
    }))
    if (batches.length > 1) this.#options.onCount('batch of several partitions')
    try {
      const deadlineMs = scheduler.clockOf(owner).nowMs() + timeLimitMs
      owner.deadlineMs = deadlineMs
      const { failures } = await runner.run(batches, { deadlineMs })
      const left = failures.reduce((sum, { notDone }) => sum + notDone.length, 0)
      scheduler.note(owner.name, () =>
        left > 0
          ? `answers: ${records.length - left} of ${records.length} done, ${describeError(failures[0]?.error).message}`
          : `answers: all ${records.length} done`,
      )
      for (const { error } of failures) this.#options.onError(environment, error)
      return answerOf(this.#options.answers, source, failures)
    } catch (error) {
      scheduler.note(owner.name, () => `fails: ${describeError(error).message}`)
      this.#options.onError(environment, error)
      return { kind: 'function-error', reason: describeError(error).message }
    }
  }

  /** Counts in which ways a batch differs from the one before. */
  #countBatch(environment: Environment, invocation: Invocation): void {
    const { onCount } = this.#options
    const name = batchName(environment, invocation)
    const before = this.#sizes.get(name)
    const size = invocation.records.length
    if (before !== undefined && before !== size) {
      onCount(this.#failed.has(name) && size < before ? 'bisected batch' : 'batch with another cut')
    }
    this.#sizes.set(name, size)
    this.#failed.delete(name)
    const isSecond = this.busy.some(
      (other) => other !== environment && other.stage === environment.stage && meet(other.invocation, invocation),
    )
    if (isSecond) onCount('two invocations of one shard')
  }

  #noteOutcome(environment: Environment, invocation: Invocation, { kind }: InvocationOutcome): void {
    if (kind === 'function-error') this.#failed.add(batchName(environment, invocation))
  }

  #noteOld({ version, stage }: Environment): void {
    if (version % 2 === 0) this.oldUntilMs.set(stage, this.#options.scheduler.nowMs())
  }

  /** An idle environment of the present version, or a new one. */
  #take(stage: string): Environment {
    const { random, faults } = this.#options
    const idle = this.#alive.filter(
      (environment) =>
        environment.stage === stage &&
        environment.version === this.version &&
        environment.invocation === undefined &&
        environment.owner.frozenUntilMs <= this.#options.scheduler.nowMs(),
    )
    if (idle.length > 0 && !random.chance(faults().coldStart)) return random.pick(idle)
    const owner = newOwner(`${stage}#${this.#made++}`)
    const runner = this.#options.makeRunner(stage, owner, this.version)
    const environment: Environment = {
      owner,
      stage,
      version: this.version,
      runner,
      invocation: undefined,
      hasServed: false,
    }
    this.#alive.push(environment)
    // Of many idle ones the oldest goes, so that stale caches stay a matter of chance and not of memory.
    if (idle.length > 6) this.#forget(idle[0] as Environment)
    return environment
  }

  #forget(environment: Environment): void {
    environment.owner.isDead = true
    this.#alive = this.#alive.filter((other) => other !== environment)
  }

  /** The environment dies where it stands. */
  kill(environment: Environment, reason: string): void {
    this.#options.scheduler.note(environment.owner.name, () => `dies: ${reason}`)
    this.#forget(environment)
    this.#noteOld(environment)
    if (environment.invocation) this.#failed.add(batchName(environment, environment.invocation))
    environment.invocation?.answer({ kind: 'function-error', reason })
  }

  /** The mapping gives up waiting; the environment goes on, at once or after a sleep. */
  makeZombie(environment: Environment, sleepMs: number): void {
    const { invocation, owner } = environment
    if (invocation === undefined) return
    const { scheduler } = this.#options
    scheduler.note(owner.name, () => `is given up${sleepMs > 0 ? ` and sleeps ${sleepMs} ms` : ''}`)
    invocation.isZombie = true
    if (sleepMs > 0) scheduler.freeze(owner, sleepMs)
    invocation.answer({ kind: 'function-error', reason: 'given up by the simulator' })
  }
}

/** The records of an invocation by the shard or partition that they are of. */
export function byPartition({
  shardId,
  records,
}: Pick<Invocation, 'shardId' | 'records'>): ReadonlyMap<string, readonly MappedRecord[]> {
  return Map.groupBy(records, (record: MappedRecord & { readonly partition?: number }) =>
    String(record.partition ?? shardId),
  )
}

function meet(one: Invocation | undefined, other: Invocation): boolean {
  if (one === undefined) return false
  const partitions = byPartition(other)
  return [...byPartition(one).keys()].some((partition) => partitions.has(partition))
}

/** What the handler answers, in the words of each service. */
function answerOf(kind: AnswerKind, topic: string, failures: readonly PartitionFailure[]): InvocationOutcome {
  if (kind === 'on-demand' && failures.length > 0) {
    return { kind: 'function-error', reason: describeError(failures[0]?.error).message }
  }
  const identifiers = failures.flatMap(({ partition, notDone }): readonly unknown[] => {
    if (kind === 'kinesis') return [notDone[0]?.position ?? '']
    const reported = kind === 'first-offset-alone' ? notDone.slice(0, 1) : notDone
    return reported.map(({ position }) => ({ partition: `${topic}-${partition}`, offset: Number(position) }))
  })
  const batchItemFailures = identifiers.map((itemIdentifier) => ({ itemIdentifier }))
  return { kind: 'answered', payload: { batchItemFailures } }
}

const batchName = ({ stage }: Environment, { shardId, records }: Invocation): string =>
  `${stage}/${shardId}/${records[0]?.sequenceNumber}`
