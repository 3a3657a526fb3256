/**
 * What may not be changed of the mapping and the function of a stage. The CDK and CloudFormation take all of it, and records
 * would be lost or read in the wrong order without a word.
 */
import type { StagePlan } from '../plan/plan.ts'
import { environmentFindings } from './environment-size.ts'
import { isOnDemand, readsTopic, topicMappingRules } from './kafka/topic-mapping-rules.ts'
import type { MappingRule } from './mapping-rule.ts'
import type { RenderedProperties } from './rendered.ts'

/** Mappings of shards; queues have no position to start from. */
const readsShards = (mapping: RenderedProperties): boolean =>
  mapping.StartingPosition !== undefined && !readsTopic(mapping)

/** Shards, and topics by provisioned pollers: queues are not bisected. */
const isBisected = (mapping: RenderedProperties): boolean =>
  readsShards(mapping) || (readsTopic(mapping) && !isOnDemand(mapping))

const destinationOf = (mapping: RenderedProperties): unknown =>
  Object(Object(mapping.DestinationConfig).OnFailure).Destination

const gaveUp = (value: unknown, mapping: RenderedProperties): boolean =>
  typeof value === 'number' && value !== -1 && destinationOf(mapping) === undefined

const endless =
  'Lambda would drop records that were never processed: leave it out; a record that fails becomes a dead letter of the stage itself.'

const rules: readonly MappingRule[] = [
  {
    property: 'TumblingWindowInSeconds',
    isBroken: (value) => value !== undefined && value !== 0,
    remedy:
      "Lambda's windows follow arrival time, lose their state when the stream is resharded, and allow no parallelization: leave it out, and declare a window in the topology.",
  },
  {
    property: 'FilterCriteria',
    whereOrderCounts: true,
    isBroken: (value) => Object(Object(value).Filters).length > 0,
    remedy:
      'what a mapping filters out moves no event time, so windows would stay open, and is missing from the progress: filter in the topology, behind the source.',
  },
  {
    property: 'ParallelizationFactor',
    whereOrderCounts: true,
    isBroken: (value) => typeof value === 'number' && value > 1,
    remedy:
      'two batches of a shard at once would each refuse what the other wrote: leave it at 1, and give the stream more shards.',
  },
  {
    property: 'BisectBatchOnFunctionError',
    isBroken: (value, mapping) => isBisected(mapping) && (value === undefined || value === false),
    remedy:
      'a record that kills the function is found by bisecting, and would block its shard or partition: leave it at true.',
  },
  { property: 'MaximumRetryAttempts', whereOrderCounts: true, isBroken: (value) => isLimit(value), remedy: endless },
  {
    property: 'MaximumRecordAgeInSeconds',
    whereOrderCounts: true,
    isBroken: (value) => isLimit(value),
    remedy: endless,
  },
  { property: 'MaximumRetryAttempts', isBroken: gaveUp, remedy: endless },
  { property: 'MaximumRecordAgeInSeconds', isBroken: gaveUp, remedy: endless },
  {
    property: 'FunctionResponseTypes',
    isBroken: (value, mapping) =>
      !isOnDemand(mapping) && (!Array.isArray(value) || !value.includes('ReportBatchItemFailures')),
    remedy: 'Lambda would take a batch of which a part failed for done: leave it at ["ReportBatchItemFailures"].',
  },
  {
    property: 'DestinationConfig',
    whereOrderCounts: true,
    isBroken: (_, mapping) => destinationOf(mapping) !== undefined,
    remedy:
      'the stage never gives up a batch, so that nothing would come there, and makes dead letters of its own: leave it out, and say `deadLetters` to the application.',
  },
  {
    property: 'DestinationConfig',
    isBroken: (_, mapping) => readsShards(mapping) && String(destinationOf(mapping)).startsWith('kafka://'),
    remedy: 'only a mapping of Kafka may send to a topic: give a queue, a topic of SNS or a bucket.',
  },
  {
    property: 'StartingPosition',
    isBroken: (value) => value === 'LATEST',
    remedy:
      'what arrives until the mapping polls, minutes after it was created, would be lost: use TRIM_HORIZON, or AT_TIMESTAMP with a time.',
  },
  {
    property: 'ProvisionedPollerConfig',
    isBroken: (value, mapping) => value !== undefined && readsShards(mapping),
    remedy: 'Lambda has pollers of that kind for SQS and Kafka only: leave it out.',
  },
  ...topicMappingRules,
]

const isLimit = (value: unknown): boolean => typeof value === 'number' && value !== -1

/** What of a mapping is refused, as a line each that names the stage, the value and the remedy. */
export function mappingFindings(stage: StagePlan, mapping: RenderedProperties): string[] {
  const findings = rules
    .filter(({ whereOrderCounts }) => whereOrderCounts === undefined || stage.kind !== 'stateless')
    .filter(({ property, isBroken }) => isBroken(mapping[property], mapping))
    .map(
      ({ property, remedy }) =>
        `the mapping of stage "${stage.name}" has ${property} ${JSON.stringify(mapping[property])}: ${remedy}`,
    )
  return [...new Set(findings)]
}

const refusedOfFunctions: Readonly<Record<string, string>> = {
  CapacityProviderConfig:
    'with it one environment runs several batches at once, which share what the handler keeps between batches',
  TenancyConfig: 'with it an environment belongs to a tenant, whom an event source mapping does not name',
  DurableConfig: 'with it Lambda replays a handler by its own log, beside the log that the stage reads',
}

/** What of a stage's function is refused. */
export function functionFindings(stage: string, properties: RenderedProperties): string[] {
  const refused = Object.entries(refusedOfFunctions)
    .filter(([property]) => properties[property] !== undefined)
    .map(([property, why]) => `the function of stage "${stage}" has ${property}, and ${why}: leave it out.`)
  const [, major] = /^nodejs(\d+)\.x$/.exec(String(properties.Runtime)) ?? []
  if (major !== undefined && Number(major) < 24) {
    refused.push(
      `the function of stage "${stage}" has the runtime ${properties.Runtime}, and its bundle is made for Node 24: leave it at nodejs24.x.`,
    )
  }
  refused.push(...environmentFindings(`the function of stage "${stage}"`, properties))
  const variables = Object(Object(properties.Environment).Variables)
  if ('MILLRACE_BINDINGS' in variables) return refused
  return [
    ...refused,
    `the function of stage "${stage}" has lost the variable MILLRACE_BINDINGS, without which it knows no stream: override single variables, not all of them.`,
  ]
}
