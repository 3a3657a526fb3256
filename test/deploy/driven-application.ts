/**
 * A deployed application, driven by our own event source mappings: the emulators of Lambda ignore partial failures and retry in ways
 * of their own. The deployed mappings say how, and are disabled meanwhile; the deployed functions are invoked over Lambda's API.
 *
 *     deployed stream --GetRecords--> EventSourceMapping (ours, deployed settings) --Invoke--> deployed function
 */
import { setTimeout } from 'node:timers/promises'
import { DisableRuleCommand, ListTargetsByRuleCommand } from '@aws-sdk/client-eventbridge'
import {
  type EventSourceMappingConfiguration,
  GetEventSourceMappingCommand,
  InvokeCommand,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda'
import type { StandInClients } from '../../bin/deploy/clients.ts'
import {
  type DeployedStack,
  type DeployedStage,
  readDeployedStack,
  streamNameOf,
} from '../../bin/deploy/deployed-stack.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { invariant } from '../../lib/core/errors.ts'
import {
  type Checkpoint,
  EventSourceMapping,
  type InvocationOutcome,
  kinesisFormat,
  type MappingSettings,
} from '../../lib/emulator/event-source-mapping/index.ts'
import { KinesisShardReader } from '../../lib/local/reading/kinesis-shard-reader.ts'
import { isDone } from '../../lib/local/reading/stream-tail.ts'
import { watchReader } from '../../lib/local/reading/watched-reader.ts'

/** An invocation of a deployed function, and the end of its log. */
export interface Invocation {
  readonly stage: string
  readonly records: number
  readonly outcome: InvocationOutcome
  readonly log: string
}

interface Driven {
  readonly stage: DeployedStage
  readonly mapping: EventSourceMapping
  hasProcessed(sinceMs: number): boolean
}

const boundMs = 120_000

/** Waits for a condition, and says what it waited for when it does not come. */
export async function until(what: () => string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = Date.now() + boundMs
  while (!(await condition())) {
    if (Date.now() > endMs) throw new Error(`in time it did not come true that ${what()}`)
    await setTimeout(50)
  }
}

export class DrivenApplication {
  readonly stack: DeployedStack
  /** Of all stages, in the order in which they ended. */
  readonly invocations: Invocation[] = []
  readonly #clients: StandInClients
  readonly #driven: readonly Driven[]

  private constructor(clients: StandInClients, stack: DeployedStack) {
    this.#clients = clients
    this.stack = stack
    this.#driven = stack.stages.map((stage) => this.#drive(stage))
  }

  /** Takes over from the deployed mappings and the rule of a stack, and begins at the beginning of its streams. */
  static async start(clients: StandInClients, stackName: string): Promise<DrivenApplication> {
    const application = new DrivenApplication(clients, await readDeployedStack(clients, stackName))
    await application.takeOver()
    for (const { mapping } of application.#driven) await mapping.start()
    return application
  }

  /**
   * Disables the deployed mappings, and the rule of the announcer: on a slow machine it would move event time on between two steps of a
   * test. A deployment may have enabled them again.
   */
  async takeOver(): Promise<void> {
    const { lambda, eventBridge } = this.#clients
    const { announcer } = this.stack
    if (announcer) await eventBridge.send(new DisableRuleCommand({ Name: announcer.rule }))
    for (const { mapping } of this.stack.stages) {
      await lambda.send(new UpdateEventSourceMappingCommand({ UUID: mapping.UUID, Enabled: false }))
      await until(
        () => `the mapping ${mapping.UUID} is disabled`,
        async () => {
          const { State } = await lambda.send(new GetEventSourceMappingCommand({ UUID: mapping.UUID }))
          return State === 'Disabled'
        },
      )
    }
  }

  stage(name: string): DeployedStage {
    const stage = this.stack.stages.find((one) => one.name === name)
    invariant(stage, `there is no stage ${name}`)
    return stage
  }

  /** What the deployed announcer does each minute: an event as the target of its rule says it. */
  async announce(): Promise<InvocationOutcome> {
    const { announcer } = this.stack
    invariant(announcer, `the stack ${this.stack.name} has no announcer`)
    const { Targets: [target] = [] } = await this.#clients.eventBridge.send(
      new ListTargetsByRuleCommand({ Rule: announcer.rule }),
    )
    expect(target?.Arn).toBe(announcer.functionArn)
    return this.#invoke('announcer', announcer, JSON.parse(target?.Input ?? ''), 0)
  }

  /** Resolves when what is in the streams by now has gone through all stages. */
  async settle(): Promise<void> {
    for (const kind of ['source', 'keyed']) {
      const sinceMs = Date.now()
      const driven = this.#driven.filter(({ stage }) => stage.kind === kind)
      await until(
        () => `the stages of kind ${kind} have processed what is there: ${this.problems().join('; ')}`,
        () => driven.every(({ hasProcessed }) => hasProcessed(sinceMs)),
      )
    }
  }

  /** Why shards do not go on, and the end of the log of the last invocation of their function. */
  problems(): readonly string[] {
    return this.#driven.flatMap(({ stage: { name }, mapping }) => {
      const reasons = mapping.status().shards.flatMap(({ reason }) => (reason === undefined ? [] : [reason]))
      const last = this.invocations.findLast(({ stage }) => stage === name)
      return reasons.length === 0 ? [] : [`${name}: ${reasons.join(', ')}\n${last?.log}`]
    })
  }

  async stop(): Promise<void> {
    await Promise.all(this.#driven.map(({ mapping }) => mapping.stop()))
  }

  #drive(stage: DeployedStage): Driven {
    const { source } = stage
    invariant(source.kind === 'kinesis', 'the stage reads no Kinesis stream')
    const streamName = streamNameOf(source)
    const reader = watchReader(
      new KinesisShardReader({ client: this.#clients.kinesis, streamName, clock: systemClock }),
      systemClock,
    )
    const checkpoints = new Map<string, Checkpoint>()
    const mapping = new EventSourceMapping({
      settings: settingsOf(stage.mapping),
      format: kinesisFormat({ streamArn: source.streamArn }),
      reader,
      invoker: {
        invoke: (event) => {
          const { Records } = event as { readonly Records: readonly unknown[] }
          return this.#invoke(stage.name, stage, event, Records.length)
        },
      },
      checkpoints: {
        load: async () => new Map(checkpoints),
        save: async (shardId, checkpoint) => void checkpoints.set(shardId, checkpoint),
      },
      clock: systemClock,
    })
    return {
      stage,
      mapping,
      hasProcessed: (sinceMs) => isDone(mapping.status(), (shardId) => reader.hasReachedEnd(shardId, sinceMs)),
    }
  }

  async #invoke(
    stage: string,
    { functionName, timeoutMs }: { readonly functionName: string; readonly timeoutMs: number },
    event: unknown,
    records: number,
  ): Promise<InvocationOutcome> {
    const command = new InvokeCommand({
      FunctionName: functionName,
      LogType: 'Tail',
      Payload: Buffer.from(JSON.stringify(event)),
    })
    const answer = await this.#clients.lambda.send(command, { requestTimeout: timeoutMs + 15_000 })
    const text = Buffer.from(answer.Payload ?? []).toString()
    const payload = text === '' ? null : JSON.parse(text)
    const outcome: InvocationOutcome =
      answer.FunctionError === undefined
        ? { kind: 'answered', payload }
        : { kind: 'function-error', reason: JSON.stringify(payload) }
    const log = Buffer.from(answer.LogResult ?? '', 'base64').toString()
    this.invocations.push({ stage, records, outcome, log })
    return outcome
  }
}

/** The settings of the deployed mapping. Only the speed of the emulator is our own. */
export function settingsOf(deployed: EventSourceMappingConfiguration): MappingSettings {
  const { UUID, FunctionArn, StartingPosition, FunctionResponseTypes = [] } = deployed
  const { BatchSize, MaximumBatchingWindowInSeconds, ParallelizationFactor, MaximumRetryAttempts } = deployed
  const { MaximumRecordAgeInSeconds, BisectBatchOnFunctionError, FilterCriteria, TumblingWindowInSeconds } = deployed
  // What the emulator does not do must not be lost in silence.
  expect(TumblingWindowInSeconds ?? 0).toBe(0)
  expect(FilterCriteria?.Filters ?? []).toEqual([])
  invariant(UUID && FunctionArn && StartingPosition === 'TRIM_HORIZON', `an unexpected mapping ${UUID}`)
  return {
    uuid: UUID,
    functionArn: FunctionArn,
    startingPosition: StartingPosition,
    batchSize: BatchSize ?? 100,
    maximumBatchingWindowInSeconds: MaximumBatchingWindowInSeconds ?? 0,
    parallelizationFactor: ParallelizationFactor ?? 1,
    maximumRetryAttempts: MaximumRetryAttempts ?? -1,
    maximumRecordAgeInSeconds: MaximumRecordAgeInSeconds ?? -1,
    bisectBatchOnFunctionError: BisectBatchOnFunctionError ?? false,
    functionResponseTypes: FunctionResponseTypes,
    emulation: { pollIntervalMs: 100, backlogPollIntervalMs: 20 },
  }
}
