/**
 * The application of a CloudFormation stack. What it is made of is read from the functions themselves: each has in its environment
 * what it is bound to. So no topology file is needed, and what is shown is what is deployed.
 */
import { type CloudFormationClient, paginateListStackResources } from '@aws-sdk/client-cloudformation'
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { GetFunctionConfigurationCommand, type LambdaClient } from '@aws-sdk/client-lambda'
import { createDynamoDBClient } from '../../../lib/aws/clients/dynamodb.ts'
import { kinesisLineage } from '../../../lib/aws/kinesis/lineage.ts'
import { DynamoDBStateStore } from '../../../lib/aws/state-table/store.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import type { Closing } from '../../../lib/local/closing.ts'
import { KinesisShardReader } from '../../../lib/local/reading/kinesis-shard-reader.ts'
import { localDynamoDBClient } from '../../../lib/local/run/tables.ts'
import { unpackedBindings } from '../../../lib/plan/packed-bindings.ts'
import { bindingsVariable, type KafkaCluster, type StageBindings } from '../../../lib/plan/stage-bindings.ts'
import { cloudFormationClient, kinesisClient, lambdaClient } from '../dead-letter-clients.ts'
import { groupOffsets, kafkaClients } from '../kafka-clients.ts'
import { Mappings, refused } from './mappings.ts'
import { type MappingState, type Operated, type OperatedStage, orderedStages } from './operated.ts'
import { keyedAdvice, sourceAdvice } from './rewind-advice.ts'
import { isTopicSource, type TopicPlaceOptions, topicPlace } from './topic-place.ts'
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
  readonly kinesis: KinesisClient
  readonly dynamodb: DynamoDBClient
  /** What topics of a cluster are looked at with. */
  readonly topics: (cluster: KafkaCluster) => Promise<Pick<TopicPlaceOptions, 'kafka' | 'offsets'>>
}

/** Of a call that reads or switches a mapping: a command that waits for minutes is not to end with one lost connection. */
const mostAttempts = 5

export async function openStack({ stack, application, endpoint }: StackPlace, closing: Closing): Promise<Operated> {
  const lambda = lambdaClient(endpoint, mostAttempts)
  const kinesis = kinesisClient(endpoint)
  const dynamodb = endpoint === undefined ? createDynamoDBClient() : localDynamoDBClient(endpoint)
  for (const client of [lambda, kinesis, dynamodb]) closing.defer(() => client.destroy())
  const [kafka, offsets] = [kafkaClients(endpoint, closing), groupOffsets(endpoint, closing)]
  const clients: Clients = {
    kinesis,
    dynamodb,
    topics: async (cluster) => ({ kafka: await kafka(), offsets: await offsets(cluster) }),
  }
  const all = await stageFunctions(stack, endpoint, closing, lambda)
  const functions = ofApplication(all, application, stack)
  const topology = functions[0]?.bindings.topology ?? ''
  const functionOf = (stage: string): StageFunction => {
    const found = functions.find(({ bindings }) => bindings.sources.some(({ name }) => name === stage))
    if (found) return found
    throw new ConfigurationError(`No function of stack ${stack} runs stage "${stage}".`)
  }
  const mappings = new Mappings(lambda)
  const stages: OperatedStage[] = []
  for (const stage of orderedStages(functions.map(({ bindings }) => bindings))) {
    const found = functions.find(({ bindings }) => bindings === stage.bindings) as StageFunction
    stages.push({ ...stage, ...(await placesOf(found, stage.name, clients, mappings)) })
  }
  return {
    title: `${topology} (stack ${stack})`,
    topology,
    flags: [`--stack ${stack}`, ...(endpoint === undefined ? [] : [`--endpoint ${endpoint}`])].join(' '),
    stages,
    dynamodb,
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
      const group = await mappings.chosenGroupOf(functionName, bindings)
      await mappings.remove(functionName, bindings)
      const isSource = !functions.some(({ bindings: { feeds = [] } }) => feeds.some((fed) => fed.stage === stage))
      const kind = bindings.sources[0]?.kind === 'kafka' ? 'kafka' : 'kinesis'
      return isSource ? sourceAdvice(stage, fromMs, { kind, group }) : keyedAdvice(stage, fromMs, group)
    },
  }
}

type Places = Pick<OperatedStage, 'state' | 'lineage' | 'firstWaitingMs' | 'groupLag'>

/** What is known of a stage beside its bindings: of its table, and of what it reads. */
async function placesOf(
  { functionName, bindings }: StageFunction,
  stage: string,
  { kinesis, dynamodb, topics }: Clients,
  mappings: Mappings,
): Promise<Places> {
  const state = bindings.state && {
    store: new DynamoDBStateStore({ client: dynamodb, tableName: bindings.state.tableName, stage, clock: systemClock }),
    tableName: bindings.state.tableName,
  }
  const [source] = bindings.sources
  if (isTopicSource(source)) {
    const group = () => mappings.groupOf(functionName, bindings)
    return { state, ...topicPlace({ source, group, ...(await topics(source.cluster)) }) }
  }
  if (source?.kind !== 'kinesis') return { state, lineage: undefined, firstWaitingMs: async () => undefined }
  const { streamArn, startingAtMs } = source
  const reader = new KinesisShardReader({
    client: kinesis,
    streamName: streamNameIn(bindings) ?? '',
    clock: systemClock,
  })
  return {
    state,
    lineage: kinesisLineage({ client: kinesis, streamArn, clock: systemClock, startingAtMs }),
    firstWaitingMs: (...place: Place) => firstWaiting(reader, ...place),
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
      const bindings = text === undefined ? undefined : (unpackedBindings(JSON.parse(text)) as StageBindings)
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
