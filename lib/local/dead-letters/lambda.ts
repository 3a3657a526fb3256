/**
 * The deployed function of an application, invoked for a redrive.
 *
 * Invariants:
 * 1. Only an answer of the function itself is one. A function error, a throttle, a time-out or a lost answer is none, and the record stays
 *    open; where the function had processed it all the same, the next redrive repeats it under the same identity.
 * 2. What a function answers beside failures is never shown: it may quote what a record held.
 */
import {
  type FunctionConfiguration,
  GetFunctionConfigurationCommand,
  InvokeCommand,
  type LambdaClient,
} from '@aws-sdk/client-lambda'
import type { OpenKafka } from '../../aws/kafka/open-kafka.ts'
import type { KinesisPort } from '../../aws/kinesis/destination.ts'
import { ConfigurationError, describeError } from '../../core/errors.ts'
import type { InvocationOutcome } from '../../emulator/event-source-mapping/index.ts'
import { unpackedBindings } from '../../plan/packed-bindings.ts'
import { bindingsVariable, type SourceBinding, type StageBindings } from '../../plan/stage-bindings.ts'
import type { KeyedStreams } from './frame.ts'
import { misfit, type OriginalRecord, redriveEvent } from './record.ts'
import type { RedriveFunction } from './redrive.ts'
import { kinesisStageStream, type StageStream, stageStreams } from './streams.ts'

/** What Lambda takes to start a function and to carry its answer, on top of the function's own time. */
const overheadMs = 15_000
/** The longest that a function may run, where it does not say. */
const longestTimeoutSeconds = 900

/** A function on Lambda, or on an endpoint that speaks its protocol. */
export class DeployedFunction implements RedriveFunction {
  readonly #client: LambdaClient
  readonly #name: string
  readonly #timeoutMs: number
  /** What the function is bound to. */
  readonly bindings: StageBindings

  private constructor(client: LambdaClient, name: string, timeoutMs: number, bindings: StageBindings) {
    this.#client = client
    this.#name = name
    this.#timeoutMs = timeoutMs
    this.bindings = bindings
  }

  /**
   * Finds the function and reads what it is bound to. `name` may be its ARN and may name an alias.
   *
   * @throws ConfigurationError where it cannot be read, or is no function of Millrace.
   * @example
   * const own = await DeployedFunction.open(new LambdaClient({}), 'orders-OrdersStage')
   */
  static async open(client: LambdaClient, name: string): Promise<DeployedFunction> {
    const configuration = await configurationOf(client, name)
    const { Timeout = longestTimeoutSeconds, Environment } = configuration
    const text = Environment?.Variables?.[bindingsVariable]
    if (text === undefined) {
      const why = Environment?.Error?.Message ?? `its environment has no ${bindingsVariable}`
      throw new ConfigurationError(`The function ${name} is not known as one of Millrace: ${why}.`)
    }
    return new DeployedFunction(client, name, Timeout * 1_000 + overheadMs, readBindings(text, name))
  }

  refusal(record: OriginalRecord): string | undefined {
    return misfit(record, this.#binding(record.source))
  }

  async invoke(record: OriginalRecord): Promise<InvocationOutcome> {
    const event = redriveEvent(record, this.#binding(record.source) as SourceBinding)
    const command = new InvokeCommand({
      FunctionName: this.#name,
      InvocationType: 'RequestResponse',
      Payload: Buffer.from(JSON.stringify(event)),
    })
    try {
      const { FunctionError, Payload } = await this.#client.send(command, { requestTimeout: this.#timeoutMs })
      const payload = parsed(Payload)
      if (FunctionError === undefined) return { kind: 'answered', payload }
      return { kind: 'function-error', reason: `the function failed (${errorTypeOf(payload)}): its log says why` }
    } catch (error) {
      return { kind: 'not-run', reason: oneLine(error) }
    }
  }

  /**
   * The streams and topics of the keyed stages that the function feeds: dead letters of these go there, and not to it. `kafka` is called
   * with the first frame for a topic.
   */
  keyedStreams(kinesis: KinesisPort, kafka: () => Promise<Pick<OpenKafka, 'frames'>>): KeyedStreams {
    const { feeds = [] } = this.bindings
    const streams = new Map(
      feeds.map((feed): [string, StageStream] => [
        feed.stage,
        'topic' in feed
          ? { slots: feed.slots, open: async () => (await kafka()).frames(feed) }
          : kinesisStageStream(kinesis, feed, feed.slots),
      ]),
    )
    const unknown = (stage: string) =>
      `it failed in the keyed stage "${stage}", which the function ${this.#name} does not feed: name with --function one that does`
    return stageStreams({ streams, unknown })
  }

  #binding(source: string): SourceBinding | undefined {
    return this.bindings.sources.find(({ name }) => name === source)
  }
}

async function configurationOf(client: LambdaClient, name: string): Promise<FunctionConfiguration> {
  try {
    return await client.send(new GetFunctionConfigurationCommand({ FunctionName: name }))
  } catch (error) {
    throw new ConfigurationError(`The function ${name} cannot be read: ${oneLine(error)}`, { cause: error })
  }
}

function readBindings(text: string, name: string): StageBindings {
  const value = unpackedBindings(parsed(Buffer.from(text)) as Partial<StageBindings> | undefined)
  if (value?.formatVersion === 1 && Array.isArray(value.sources) && value.deadLetters !== undefined) {
    return value as StageBindings
  }
  throw new ConfigurationError(
    `The function ${name} has a ${bindingsVariable} of format version ${value?.formatVersion}, and this release of Millrace reads 1: use the release that it was deployed with.`,
  )
}

function parsed(bytes: Uint8Array | undefined): unknown {
  try {
    return JSON.parse(Buffer.from(bytes ?? []).toString())
  } catch {
    return undefined
  }
}

/** The name of the error's class, and nothing that could be a value of a record. */
function errorTypeOf(payload: unknown): string {
  const { errorType } = Object(payload) as { errorType?: unknown }
  return typeof errorType === 'string' && /^[\w.]{1,80}$/.test(errorType) ? errorType : 'an error without a type'
}

function oneLine(error: unknown): string {
  const { name, message } = describeError(error)
  return `${name}: ${message.split('\n')[0]}`
}
