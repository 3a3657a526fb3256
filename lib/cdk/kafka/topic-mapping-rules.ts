/**
 * What may not be changed of a mapping of Kafka, beside what no mapping may be.
 *
 * @see https://docs.aws.amazon.com/lambda/latest/dg/kafka-retry-configurations.html
 * @see https://docs.aws.amazon.com/lambda/latest/dg/kafka-on-failure.html
 */
import type { MappingRule } from '../mapping-rule.ts'
import type { RenderedProperties } from '../rendered.ts'
import { onlyByValue, wrongFilter } from './topic-filter.ts'

/** Whether a mapping reads a topic. */
export const readsTopic = ({ Topics }: RenderedProperties): boolean => Topics !== undefined

/** Whether its pollers come as they are needed: those have none of what tells good records from bad. */
export const isOnDemand = (mapping: RenderedProperties): boolean =>
  readsTopic(mapping) && mapping.ProvisionedPollerConfig === undefined

const needsPollers =
  'only provisioned pollers have it, and Lambda refuses the mapping: give the KafkaSource `pollers`, which are paid by the hour, or leave it out.'

const onDemandTakesNo = (
  property: string,
  isSet: (value: unknown) => boolean = (value) => value !== undefined,
): MappingRule => ({
  property,
  isBroken: (value, mapping) => isOnDemand(mapping) && isSet(value),
  remedy: needsPollers,
})

const destinationOf = (value: unknown): unknown => Object(Object(value).OnFailure).Destination

const isEndless = ({ MaximumRetryAttempts: attempts }: RenderedProperties): boolean =>
  attempts === undefined || attempts === -1

const patternsOf = (value: unknown): readonly unknown[] =>
  Array.from<{ readonly Pattern?: unknown }>(Object(Object(value).Filters)).map(({ Pattern }) => Pattern)

const filtersByOther = (pattern: unknown): boolean => wrongFilter(pattern) !== undefined

const hasRegistry = (value: unknown): boolean => Object(value).SchemaRegistryConfig !== undefined

export const topicMappingRules: readonly MappingRule[] = [
  onDemandTakesNo('FunctionResponseTypes', (value) => Object(value).length > 0),
  onDemandTakesNo('BisectBatchOnFunctionError', (value) => value === true),
  onDemandTakesNo('MaximumRetryAttempts'),
  onDemandTakesNo('MaximumRecordAgeInSeconds'),
  onDemandTakesNo('LoggingConfig'),
  onDemandTakesNo('AmazonManagedKafkaEventSourceConfig', hasRegistry),
  onDemandTakesNo('SelfManagedKafkaEventSourceConfig', hasRegistry),
  onDemandTakesNo('DestinationConfig', (value) => String(destinationOf(value)).startsWith('kafka://')),
  {
    property: 'DestinationConfig',
    isBroken: (value, mapping) => readsTopic(mapping) && destinationOf(value) !== undefined && isEndless(mapping),
    remedy:
      'with a destination Lambda ends endless retries after ten, without a word, and gives up what a short outage would let through: leave it out, and say `deadLetters` to the application; or, with `pollers`, set MaximumRetryAttempts to a number that you have chosen.',
  },
  {
    property: 'FilterCriteria',
    isBroken: (value, mapping) => readsTopic(mapping) && patternsOf(value).some(filtersByOther),
    remedy: `${onlyByValue}, as the KafkaSource's \`filters\` do, or filter in the topology.`,
  },
  {
    property: 'ParallelizationFactor',
    isBroken: (value, mapping) => readsTopic(mapping) && value !== undefined && value !== 1,
    remedy: 'Lambda has it for shards only: leave it out, and give the topic more partitions.',
  },
  {
    property: 'SelfManagedKafkaEventSourceConfig',
    isBroken: (value) => Object(value).ConsumptionMode === 'Queue',
    remedy:
      'a share group keeps no order of a partition, and begins at no position: leave ConsumptionMode at "Stream".',
  },
]
