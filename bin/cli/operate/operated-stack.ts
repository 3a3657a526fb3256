/**
 * The application of a CloudFormation stack. What it is made of is read from the functions themselves: each has in its environment
 * what it is bound to. So no topology file is needed, and what is shown is what is deployed.
 */
import { type CloudFormationClient, paginateListStackResources } from '@aws-sdk/client-cloudformation'
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import {
  DeleteEventSourceMappingCommand,
  type EventSourceMappingConfiguration,
  GetEventSourceMappingCommand,
  GetFunctionConfigurationCommand,
  type LambdaClient,
  type ListEventSourceMappingsCommandInput,
  paginateListEventSourceMappings,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda'
import { createDynamoDBClient } from '../../../lib/aws/dynamodb-client.ts'
import { DynamoDBStateStore } from '../../../lib/aws/dynamodb-state-store.ts'
import { kinesisLineage } from '../../../lib/aws/kinesis-lineage.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../../lib/core/errors.ts'
import type { Closing } from '../../../lib/local/closing.ts'
import { KinesisShardReader } from '../../../lib/local/kinesis-shard-reader.ts'
import { localDynamoDBClient } from '../../../lib/local/local-tables.ts'
import { bindingsVariable, eventSourceArnOf, type StageBindings } from '../../../lib/plan/stage-bindings.ts'
import { cloudFormationClient, kinesisClient, lambdaClient } from '../dead-letter-clients.ts'
import { type MappingState, type Operated, orderedStages } from './operated.ts'
import { firstWaiting, type Place, streamNameIn } from './waiting.ts'

export interface StackPlace {
  readonly stack: string
  /** The topology, where the stack holds several. */
  readonly application: string | undefined
  readonly endpoint: string | undefined
}

/** A function of the stack that runs a stage. */
interface StageFunction {
  readonly functionName: string
  readonly timeoutMs: number
  readonly bindings: StageBindings
}

interface Clients {
  readonly lambda: LambdaClient
  readonly kinesis: KinesisClient
  readonly dynamodb: DynamoDBClient
}

export async function openStack({ stack, application, endpoint }: StackPlace, closing: Closing): Promise<Operated> {
  const clients: Clients = {
    lambda: lambdaClient(endpoint),
    kinesis: kinesisClient(endpoint),
    dynamodb: endpoint === undefined ? createDynamoDBClient() : localDynamoDBClient(endpoint),
  }
  for (const client of Object.values(clients)) closing.defer(() => client.destroy())
  const all = await stageFunctions(stack, endpoint, closing, clients.lambda)
  const functions = ofApplication(all, application, stack)
  const topology = functions[0]?.bindings.topology ?? ''
  const functionOf = (stage: string): StageFunction => {
    const found = functions.find(({ bindings }) => bindings.sources.some(({ name }) => name === stage))
    if (found) return found
    throw new ConfigurationError(`No function of stack ${stack} runs stage "${stage}".`)
  }
  const mappings = new Mappings(clients.lambda)
  return {
    title: `${topology} (stack ${stack})`,
    topology,
    flags: [`--stack ${stack}`, ...(endpoint === undefined ? [] : [`--endpoint ${endpoint}`])].join(' '),
    stages: orderedStages(functions.map(({ bindings }) => bindings)).map((stage) => ({
      ...stage,
      ...placesOf(stage.bindings, stage.name, clients),
    })),
    dynamodb: clients.dynamodb,
    inFlightMs: Math.max(...functions.map(({ timeoutMs }) => timeoutMs)),
    note: undefined,
    async mappingStates() {
      const states = new Map<string, MappingState>()
      for (const { bindings, functionName } of functions) {
        const found = await mappings.of(functionName, bindings)
        for (const { name } of bindings.sources) states.set(name, found?.State ?? 'Missing')
      }
      return states
    },
    async switchMappings(stages, enabled) {
      for (const stage of stages) {
        const { functionName, bindings } = functionOf(stage)
        await mappings.switch(functionName, bindings, enabled)
      }
    },
    async checkRewind(stage, fromMs) {
      const { functionName, bindings } = functionOf(stage)
      await mappings.checkRemoval(functionName, bindings, fromMs)
    },
    async rewind(stage, fromMs) {
      const { functionName, bindings } = functionOf(stage)
      await mappings.remove(functionName, bindings)
      const isSource = !functions.some(({ bindings: { feeds = [] } }) => feeds.some((fed) => fed.stage === stage))
      return [isSource ? rewindAdvice(stage, fromMs) : keyedRewindAdvice(stage, fromMs)]
    },
  }
}

/** What only a deployment can do: a starting position is fixed when a mapping is made, and the stack owns the mapping. */
const rewindAdvice = (stage: string, fromMs: number): string =>
  `The mapping of source "${stage}" was deleted, since Lambda fixes its starting position when it is made. Bind the source with new KinesisSource(stream, { startingPosition: new Date('${new Date(fromMs).toISOString()}') }) and deploy: the changed position makes CloudFormation create the mapping anew, enabled, and nothing stands in its way. A deployment without that change leaves the source without a mapping.`

/** A keyed stage has no starting position to be set: its mapping is reached by its resource. */
const keyedRewindAdvice = (stage: string, fromMs: number): string =>
  `The mapping of stage "${stage}" was deleted, since one that goes on where it stopped would leave records out. Deploy the stack with the table, and with the mapping set to begin anew: const mapping = application.stage('${stage}').mapping.node.defaultChild as CfnEventSourceMapping; mapping.startingPosition = 'AT_TIMESTAMP'; mapping.startingPositionTimestamp = ${Math.floor(fromMs / 1_000)}. The changed position makes CloudFormation create the mapping; leave it in the stack from then on. A deployment without it leaves the stage without a mapping.`

function placesOf(bindings: StageBindings, stage: string, { kinesis, dynamodb }: Clients) {
  const [source] = bindings.sources
  const streamName = streamNameIn(bindings)
  const reader =
    streamName === undefined ? undefined : new KinesisShardReader({ client: kinesis, streamName, clock: systemClock })
  const state = bindings.state && {
    store: new DynamoDBStateStore({ client: dynamodb, tableName: bindings.state.tableName, stage, clock: systemClock }),
    tableName: bindings.state.tableName,
  }
  return {
    state,
    lineage:
      source?.kind === 'kinesis'
        ? kinesisLineage({
            client: kinesis,
            streamArn: source.streamArn,
            clock: systemClock,
            startingAtMs: source.startingAtMs,
          })
        : undefined,
    firstWaitingMs: async (...place: Place) => reader && firstWaiting(reader, ...place),
  }
}

/**
 * What the stages of a stack's applications are bound to, whichever they are. Throws a ConfigurationError where the stack cannot be read,
 * with that of AWS as its cause.
 */
export async function deployedBindings(
  { stack, endpoint }: Pick<StackPlace, 'stack' | 'endpoint'>,
  closing: Closing,
): Promise<readonly StageBindings[]> {
  const lambda = lambdaClient(endpoint)
  closing.defer(() => lambda.destroy())
  return (await stageFunctions(stack, endpoint, closing, lambda)).map(({ bindings }) => bindings)
}

async function functionsOf(stack: string, endpoint: string | undefined, closing: Closing): Promise<readonly string[]> {
  const client: CloudFormationClient = cloudFormationClient(endpoint)
  closing.defer(() => client.destroy())
  const names: string[] = []
  try {
    for await (const page of paginateListStackResources({ client }, { StackName: stack })) {
      for (const { ResourceType, PhysicalResourceId } of page.StackResourceSummaries ?? []) {
        if (ResourceType === 'AWS::Lambda::Function' && PhysicalResourceId) names.push(PhysicalResourceId)
      }
    }
  } catch (error) {
    throw refused(`The resources of stack ${stack} cannot be listed`, error)
  }
  return names
}

async function stageFunctions(
  stack: string,
  endpoint: string | undefined,
  closing: Closing,
  client: LambdaClient,
): Promise<readonly StageFunction[]> {
  const found: StageFunction[] = []
  for (const FunctionName of await functionsOf(stack, endpoint, closing)) {
    try {
      const { Environment, Timeout = 3 } = await client.send(new GetFunctionConfigurationCommand({ FunctionName }))
      const text = Environment?.Variables?.[bindingsVariable]
      const bindings = text === undefined ? undefined : (JSON.parse(text) as StageBindings)
      // The announcer's function is told of all stages, and runs none.
      if (bindings?.sources) found.push({ functionName: FunctionName, timeoutMs: Timeout * 1_000, bindings })
    } catch (error) {
      throw refused(`The configuration of function ${FunctionName} cannot be read`, error)
    }
  }
  return found
}

function ofApplication(
  all: readonly StageFunction[],
  application: string | undefined,
  stack: string,
): readonly StageFunction[] {
  const topologies = [...new Set(all.map(({ bindings }) => bindings.topology))]
  if (topologies.length === 0) {
    throw new ConfigurationError(
      `Stack ${stack} has no function of a StreamApplication: name the stack that the application is deployed with (nested stacks by their own names).`,
    )
  }
  const [only] = topologies
  const wanted = application ?? (topologies.length === 1 ? only : undefined)
  if (wanted !== undefined && topologies.includes(wanted))
    return all.filter(({ bindings }) => bindings.topology === wanted)
  const problem = application === undefined ? `holds several applications` : `holds no application ${application}`
  throw new ConfigurationError(`Stack ${stack} ${problem}: say --application with one of ${topologies.join(', ')}.`)
}

/** The event source mappings of the functions. */
class Mappings {
  readonly #client: LambdaClient
  /** By function: the mapping's id. */
  readonly #ids = new Map<string, string>()

  constructor(client: LambdaClient) {
    this.#client = client
  }

  /** As it is now; undefined where the function has none for its source. */
  async of(functionName: string, bindings: StageBindings): Promise<EventSourceMappingConfiguration | undefined> {
    const known = this.#ids.get(functionName)
    try {
      if (known !== undefined) return await this.#client.send(new GetEventSourceMappingCommand({ UUID: known }))
      for (const question of questionsFor(functionName, bindings)) {
        for await (const page of paginateListEventSourceMappings({ client: this.#client }, question)) {
          const found = (page.EventSourceMappings ?? []).find((mapping) => isOf(mapping, functionName, bindings))
          if (found?.UUID === undefined) continue
          this.#ids.set(functionName, found.UUID)
          return found
        }
      }
      return undefined
    } catch (error) {
      if (known !== undefined && describeError(error).name === 'ResourceNotFoundException') return undefined
      throw refused(`The event source mapping of function ${functionName} cannot be read`, error)
    }
  }

  async switch(functionName: string, bindings: StageBindings, Enabled: boolean): Promise<void> {
    const found = await this.of(functionName, bindings)
    // Whoever waits for its state sees that it is missing.
    if (found?.UUID === undefined || found.State === (Enabled ? 'Enabled' : 'Disabled')) return
    try {
      await this.#client.send(new UpdateEventSourceMappingCommand({ UUID: found.UUID, Enabled }))
    } catch (error) {
      throw refused(`The event source mapping of function ${functionName} cannot be updated`, error)
    }
  }

  /** A position that does not change would change nothing for CloudFormation. */
  async checkRemoval(functionName: string, bindings: StageBindings, fromMs: number): Promise<void> {
    const startsAt = (await this.of(functionName, bindings))?.StartingPositionTimestamp
    if (startsAt === undefined || seconds(startsAt.getTime()) !== seconds(fromMs)) return
    throw new ConfigurationError(
      `The mapping of function ${functionName} was made with that very starting position, so a deployment would not make it anew: reset from another time, a second apart.`,
    )
  }

  /** Deletes a disabled mapping, so that a deployment can make it anew with another starting position. */
  async remove(functionName: string, bindings: StageBindings): Promise<void> {
    const found = await this.of(functionName, bindings)
    if (found?.UUID === undefined) return
    try {
      await this.#client.send(new DeleteEventSourceMappingCommand({ UUID: found.UUID }))
    } catch (error) {
      throw refused(`The event source mapping of function ${functionName} cannot be deleted`, error)
    }
  }
}

const seconds = (ms: number): number => Math.floor(ms / 1_000)

/**
 * What to ask Lambda for a stage's mapping. By the plain name it lists what invokes the function itself, and with provisioned concurrency
 * the mapping invokes the alias `live`: so it is asked by the source, which is one whatever is invoked. Only a Kafka cluster of the
 * user's own has no ARN.
 */
function questionsFor(
  functionName: string,
  { sources }: StageBindings,
): readonly ListEventSourceMappingsCommandInput[] {
  const arns = sources.map(eventSourceArnOf).filter((arn) => arn !== undefined)
  if (arns.length > 0) return arns.map((EventSourceArn) => ({ EventSourceArn }))
  return [{ FunctionName: functionName }, { FunctionName: `${functionName}:live` }]
}

/** A source may have mappings to other functions, and a function mappings of its user's beside that of its stage. */
function isOf(
  { FunctionArn = '', EventSourceArn, Topics = [] }: EventSourceMappingConfiguration,
  functionName: string,
  { sources }: StageBindings,
): boolean {
  // arn:aws:lambda:<region>:<account>:function:<name>, and where an alias is invoked, its name.
  if (FunctionArn.split(':')[6] !== functionName) return false
  return sources.some(
    (source) =>
      eventSourceArnOf(source) === EventSourceArn && (source.kind !== 'kafka' || Topics.includes(source.topic)),
  )
}

function refused(what: string, error: unknown): ConfigurationError {
  const { name, message } = describeError(error)
  return new ConfigurationError(`${what}: ${name}: ${message.split('\n')[0]}`, { cause: error })
}
