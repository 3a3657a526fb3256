/** What Lambda takes of an environment, in which a cluster's authority counts most. */
import { Template } from 'aws-cdk-lib/assertions'
import { Secret } from 'aws-cdk-lib/aws-secretsmanager'
import { DeadLetters, KafkaCluster, KafkaSink, KafkaSource } from '../../../lib/cdk/index.ts'
import { newStack } from '../world.ts'
import { linesIn } from './world.ts'

/** Lines from a topic to a topic, of a cluster whose authority has a certificate of so many bytes. */
function synthesised(bytes: number): () => Template {
  const stack = newStack()
  const secret = new Secret(stack, 'User')
  const cluster = KafkaCluster.selfManaged({
    brokers: ['kafka:9096'],
    auth: { secret },
    tls: { caPem: 'x'.repeat(bytes), secret },
  })
  linesIn(stack, {
    source: new KafkaSource(cluster, 'lines'),
    sink: new KafkaSink(cluster, 'out'),
    more: { deadLetters: DeadLetters.topic(cluster, 'failed') },
  })
  return () => Template.fromStack(stack)
}

test('a certificate of two KB fits, although two topics are in its cluster', () => {
  expect(synthesised(2_000)).not.toThrow()
})

test('one that leaves no room is refused before it is deployed', () => {
  expect(synthesised(4_000)).toThrow(
    /the environment of the function of stage "lines" has 4,\d+ bytes or more, and Lambda takes 4,096: .* one short certificate/,
  )
})
