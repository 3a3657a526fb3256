/** Rides by driver and city, whose keyed stages read topics. */
import { join } from 'node:path'
import type { Stack } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import {
  bind,
  type ClusterConnection,
  KafkaSink,
  KafkaSource,
  KeyedStreams,
  type KeyedTopicsProps,
  type StageProps,
  StreamApplication,
  type StreamApplicationProps,
} from '../../../lib/cdk/index.ts'
import { ridesTopology } from './fixtures/rides-topology.ts'
import { mskIn, networkIn } from './world.ts'

export const entry = join(__dirname, 'fixtures/rides-handler.ts')

export interface KeyedParts {
  readonly cluster?: ClusterConnection
  readonly topics?: KeyedTopicsProps
  readonly stages?: Readonly<Record<string, StageProps>>
  readonly more?: Partial<StreamApplicationProps>
}

/** The topology of the fixture, its keyed stages on topics. */
export function ridesOnTopics(stack: Stack, { cluster, topics, stages = {}, more }: KeyedParts = {}) {
  const { app, rides, cities } = ridesTopology()
  const reached = cluster ?? mskIn(stack, { network: networkIn(stack), brokers: ['b-1:9098', 'b-2:9098'] })
  return new StreamApplication(stack, 'Rides', {
    topology: app,
    entry,
    bind: [bind(rides, new KafkaSource(reached, 'rides')), bind(cities, new KafkaSink(reached, 'cities'))],
    keyedStreams: KeyedStreams.topics(reached, topics),
    stages,
    ...more,
  })
}

interface Rendered {
  readonly Properties: {
    readonly [name: string]: unknown
    readonly Request: string | { readonly 'Fn::Join': [string, unknown[]] }
  }
}

/** What a deployment asks for of the topics, in the order of their stages' names; tokens are shown as `<token>`. */
export function topicsIn(stack: Stack, type = 'Custom::MillraceTopic') {
  const resources = Object.values(Template.fromStack(stack).findResources(type)) as unknown as Rendered[]
  return resources.map(({ Properties, ...resource }) => {
    const { Request } = Properties
    const parts: unknown[] = typeof Request === 'string' ? [Request] : Request['Fn::Join'][1]
    const shown = parts.map((part) => (typeof part === 'string' ? part : '<token>')).join('')
    return { ...resource, Properties, request: JSON.parse(shown) }
  })
}
