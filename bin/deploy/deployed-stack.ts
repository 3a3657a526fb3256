/** What a stack with a StreamApplication has deployed, read from CloudFormation and from the functions themselves. */
import { DescribeStackResourcesCommand } from '@aws-sdk/client-cloudformation'
import {
  type EventSourceMappingConfiguration,
  GetFunctionConfigurationCommand,
  ListEventSourceMappingsCommand,
} from '@aws-sdk/client-lambda'
import { ConfigurationError } from '../../lib/core/errors.ts'
import { unpackedBindings } from '../../lib/plan/packed-bindings.ts'
import {
  type AnnouncerBindings,
  bindingsVariable,
  type SourceBinding,
  type StageBindings,
} from '../../lib/plan/stage-bindings.ts'
import type { StandInClients } from './clients.ts'

export interface DeployedFunction {
  readonly functionName: string
  readonly functionArn: string
  readonly timeoutMs: number
}

export interface DeployedStage extends DeployedFunction {
  readonly name: string
  readonly kind: 'source' | 'keyed'
  readonly source: SourceBinding
  readonly bindings: StageBindings
  /** The event source mapping as it was deployed. */
  readonly mapping: EventSourceMappingConfiguration
}

export interface DeployedAnnouncer extends DeployedFunction {
  /** The name of the rule that invokes it. */
  readonly rule: string
}

export interface DeployedStack {
  readonly name: string
  /** Sources first. */
  readonly stages: readonly DeployedStage[]
  /** Undefined where no stage is keyed. */
  readonly announcer: DeployedAnnouncer | undefined
}

/** Reads a stack with one application. Throws a ConfigurationError where it has none. */
export async function readDeployedStack(clients: StandInClients, name: string): Promise<DeployedStack> {
  const { StackResources = [] } = await clients.cloudFormation.send(
    new DescribeStackResourcesCommand({ StackName: name }),
  )
  const idsOf = (type: string): readonly string[] =>
    StackResources.flatMap(({ ResourceType, PhysicalResourceId: id }) => (ResourceType === type && id ? [id] : []))
  const found = await Promise.all(idsOf('AWS::Lambda::Function').map((id) => readFunction(clients, id)))
  const ours = found.filter((one) => one !== undefined)
  const stages = ours.flatMap(({ bindings, ...own }) => ('sources' in bindings ? [{ ...own, bindings }] : []))
  const fed = new Set(stages.flatMap(({ bindings }) => bindings.feeds ?? []).map(({ stage }) => stage))
  if (stages.length === 0) throw new ConfigurationError(`The stack ${name} has no function of Millrace.`)
  const announcer = ours.find(({ bindings }) => 'announces' in bindings)
  const [rule = ''] = idsOf('AWS::Events::Rule')
  const deployed = await Promise.all(
    stages.map(async (own): Promise<DeployedStage> => {
      const [source] = own.bindings.sources
      if (source === undefined) throw new ConfigurationError(`The function ${own.functionName} has no source.`)
      const kind = fed.has(source.name) ? 'keyed' : 'source'
      return { ...own, name: source.name, kind, source, mapping: await readMapping(clients, own.functionName) }
    }),
  )
  return {
    name,
    stages: deployed.toSorted((one, other) => other.kind.localeCompare(one.kind) || one.name.localeCompare(other.name)),
    announcer: announcer && { ...announcer, rule },
  }
}

type BoundFunction = DeployedFunction & { readonly bindings: StageBindings | AnnouncerBindings }

/** Undefined for a function that is not ours, such as one that the CDK adds. */
async function readFunction({ lambda }: StandInClients, id: string): Promise<BoundFunction | undefined> {
  const { FunctionName, FunctionArn, Timeout, Environment } = await lambda.send(
    new GetFunctionConfigurationCommand({ FunctionName: id }),
  )
  const text = Environment?.Variables?.[bindingsVariable]
  if (text === undefined) return undefined
  const bindings: StageBindings | AnnouncerBindings = unpackedBindings(JSON.parse(text))
  return {
    functionName: FunctionName ?? id,
    functionArn: FunctionArn ?? id,
    timeoutMs: (Timeout ?? 3) * 1_000,
    bindings,
  }
}

async function readMapping({ lambda }: StandInClients, functionName: string): Promise<EventSourceMappingConfiguration> {
  const { EventSourceMappings: [mapping] = [] } = await lambda.send(
    new ListEventSourceMappingsCommand({ FunctionName: functionName }),
  )
  if (mapping) return mapping
  throw new ConfigurationError(`The function ${functionName} has no event source mapping.`)
}

/** The name of the stream of a Kinesis source. */
export function streamNameOf(source: SourceBinding): string {
  if (source.kind === 'kinesis') return source.streamArn.slice(source.streamArn.lastIndexOf('/') + 1)
  throw new ConfigurationError(`The source ${source.name} is no Kinesis stream but of kind ${source.kind}.`)
}
