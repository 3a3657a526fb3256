/** What the stages of the application "visits-app" are bound to on a stand-in: `visits` feeds the keyed stage `by-guest`. */
import type { DeadLetterBinding, KafkaCluster, SourceBinding, StageBindings } from '../../lib/plan/stage-bindings.ts'

export const streamArnOf = (stream: string) => `arn:aws:kinesis:us-east-1:000000000000:stream/${stream}`

const bindings = (source: SourceBinding, deadLetters: DeadLetterBinding): StageBindings => ({
  ...{ formatVersion: 1, topology: 'visits-app', sources: [source], sinks: [], deadLetters },
  state: { tableName: `${source.name}-table` },
})

/** A stage that reads the stream of its name. */
export const onStream = (stage: string): StageBindings =>
  bindings({ name: stage, kind: 'kinesis', streamArn: streamArnOf(stage) }, { kind: 'kinesis', streamName: 'dead' })

/** A stage that reads a topic. */
export const onTopic = (stage: string, topic: string, cluster: KafkaCluster, clusterArn?: string): StageBindings =>
  bindings({ name: stage, kind: 'kafka', topic, clusterArn, cluster }, { kind: 'kafka', topic: 'dead', cluster })
