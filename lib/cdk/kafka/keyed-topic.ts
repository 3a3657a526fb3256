/**
 * The topic of a keyed stage, as two custom resources. One makes the topic, keeps its settings and remembers its id. The other is made
 * anew whenever the code of the stage or what is asked of the topic changes, and refuses a topic that is not what it was: a deployment
 * that is refused so rolls back, which one that was refused by an update could not.
 */
import { createHash } from 'node:crypto'
import { type CfnResource, CustomResource, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib'
import type { CfnFunction, EventSourceMapping, IFunction } from 'aws-cdk-lib/aws-lambda'
import { Construct } from 'constructs'
import type { SourceBinding, TopicPlace } from '../../plan/stage-bindings.ts'
import type { KeyedStage } from '../../plan/stages.ts'
import { type TopicRequest, topicCheckType, topicPrefixOf, topicResourceType } from '../../plan/topic-request.ts'
import type { MappingSettings, SourceConnection } from '../bind.ts'
import type { StageLog } from '../stage-log.ts'
import type { ClusterConnection } from './cluster.ts'
import { KafkaSource } from './kafka-source.ts'
import type { TopicSettings } from './stage-topic.ts'
import { checkedTopic } from './topic-name.ts'

/** For so long CloudFormation waits for an answer: the framework may ask twice. */
const answersWithin = Duration.minutes(15)

export interface KeyedTopicParts {
  readonly topology: string
  readonly stage: KeyedStage
  readonly cluster: ClusterConnection
  readonly settings: TopicSettings
  /** The function that makes and checks it, and how CloudFormation asks for that. */
  readonly maker: IFunction
  readonly serviceToken: string
}

/**
 * The topic of one keyed stage.
 *
 * @example
 * new CfnOutput(stack, 'DriversTopic', { value: application.stage('by-driver').topic.topicName })
 */
export class KeyedTopic extends Construct implements StageLog {
  /** Its name, which the deployment gives; of a topic that is brought, that. */
  readonly topicName: string
  readonly partitions: number
  readonly cluster: ClusterConnection
  /** Makes the topic. */
  readonly resource: CustomResource
  /** Refuses it where it is not what it was. */
  readonly check: CustomResource
  readonly source: SourceConnection
  readonly place: TopicPlace & { readonly partitions: number }
  readonly #settings: TopicSettings
  readonly #request: TopicRequest

  constructor(scope: Construct, { topology, stage, cluster, settings, maker, serviceToken }: KeyedTopicParts) {
    super(scope, 'Topic')
    this.#settings = settings
    this.cluster = cluster
    this.partitions = settings.partitions
    const { name, removalPolicy } = settings
    const prefix = topicPrefixOf(topology, stage.name)
    const topic = name === undefined ? { prefix } : { name: checkedTopic(name, cluster.identity) }
    const request = requestOf(stage, cluster, topic, settings)
    const text = Stack.of(this).toJsonString(request)
    this.resource = new CustomResource(this, 'Resource', {
      serviceToken,
      serviceTimeout: answersWithin,
      resourceType: topicResourceType,
      removalPolicy,
      properties: { Request: text },
    })
    this.check = new CustomResource(this, 'Check', {
      serviceToken,
      serviceTimeout: answersWithin,
      resourceType: topicCheckType,
      // Nothing is behind it that would have to go.
      removalPolicy: RemovalPolicy.RETAIN,
      properties: {
        Request: text,
        Topic: this.resource.getAttString('Topic'),
        TopicId: this.resource.getAttString('TopicId'),
      },
    })
    this.#request = request
    this.topicName = name ?? this.resource.getAttString('Topic')
    const { partitions } = settings
    this.place = {
      // Whoever is told of it is deployed after the check.
      topic: this.check.getAttString('Topic'),
      topicId: this.check.getAttString('TopicId'),
      cluster: cluster.cluster,
      partitions,
    }
    this.source = this.#sourceOf()
    for (const use of usesOf(settings)) cluster.grant(maker, use, name ?? `${prefix}*`)
  }

  retentionMs(): number {
    return this.#settings.retention.toMilliseconds()
  }

  grantFeeding(target: IFunction): void {
    this.cluster.grant(target, 'produce', this.topicName)
  }

  grantAnnouncing(target: IFunction): void {
    this.cluster.grant(target, 'look', this.topicName)
    this.cluster.grant(target, 'produce', this.topicName)
  }

  /** Has the topic looked at again when the code of the function that reads it, or what is asked for, is other than before. */
  renewedWith(reader: IFunction): void {
    const check = this.check.node.defaultChild as CfnResource
    // Not all of the function: its variables name the check.
    const { code } = reader.node.defaultChild as CfnFunction
    const looked = JSON.stringify(Stack.of(this).resolve({ code, request: this.#request }))
    // With another id CloudFormation makes another resource.
    check.overrideLogicalId(
      `${Stack.of(this).getLogicalId(check)}${createHash('sha256').update(looked).digest('hex').slice(0, 8)}`,
    )
  }

  /** By the mapping of any source on Kafka, from the oldest frame on. */
  #sourceOf(): SourceConnection {
    const { cluster, place, partitions } = this
    const { pollers } = this.#settings
    const source = new KafkaSource(cluster, this.topicName, pollers === undefined ? {} : { pollers })
    return {
      type: 'source',
      resource: this.node.path,
      cluster,
      bindingFor: (name): SourceBinding => {
        const { topic, topicId } = place
        return { ...source.bindingFor(name, true), topic, topicId, partitions } as SourceBinding
      },
      connect: (scope: Construct, target: IFunction, settings: MappingSettings): EventSourceMapping =>
        source.connect(scope, target, settings),
    }
  }
}

function requestOf(
  { name: stage, slots }: KeyedStage,
  { cluster }: ClusterConnection,
  topic: TopicRequest['topic'],
  { partitions, retention, replicationFactor, settings, removalPolicy }: TopicSettings,
): TopicRequest {
  return {
    formatVersion: 1,
    stage,
    slots,
    cluster,
    topic,
    partitions,
    retentionMs: retention.toMilliseconds(),
    ...(replicationFactor === undefined ? {} : { replicas: replicationFactor }),
    settings,
    isDeletedWithStage: removalPolicy === RemovalPolicy.DESTROY,
  }
}

/** What the function of the topics does with a topic: only one that is brought is left as it is. */
function usesOf({ name, removalPolicy }: TopicSettings): readonly ('inspect' | 'administer' | 'remove')[] {
  if (name !== undefined) return ['inspect']
  return removalPolicy === RemovalPolicy.DESTROY ? ['administer', 'remove'] : ['administer']
}
