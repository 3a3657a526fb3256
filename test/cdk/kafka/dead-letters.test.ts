/** Dead letters in a topic. */
import { DeadLetters, KafkaSink, KafkaSource } from '../../../lib/cdk/index.ts'
import { bindingsOf, grantsOf, newStack } from '../world.ts'
import { arns, linesIn, mskIn } from './world.ts'

test('a stage is told the topic, may write to it, and puts what is too large into a bucket', () => {
  const stack = newStack()
  const cluster = mskIn(stack)
  const application = linesIn(stack, {
    source: new KafkaSource(cluster, 'lines'),
    more: { deadLetters: DeadLetters.topic(cluster, 'failed') },
  })
  expect(bindingsOf(stack, application, 'lines').deadLetters).toMatchObject({
    kind: 'kafka',
    topic: 'failed',
    cluster: { auth: { kind: 'iam' } },
    offloadBucket: expect.stringContaining('DeadLetterPayloads'),
  })
  expect(grantsOf(stack, application, 'lines')).toEqual(
    expect.arrayContaining([
      `kafka-cluster:WriteData ${arns.topic('failed')}`,
      `kafka-cluster:WriteDataIdempotently ${arns.cluster}`,
    ]),
  )
})

test('a topic that is a source is refused, for dead letters and as a sink that closes a circle', () => {
  const stack = newStack()
  const cluster = mskIn(stack)
  const source = new KafkaSource(cluster, 'lines')
  expect(() => linesIn(stack, { source, more: { deadLetters: DeadLetters.topic(cluster, 'lines') } })).toThrow(
    /dead letters go to .*cluster\/shop\/0a1b2c3d-1, topic lines, which is also source "lines": they would come back for ever; give them a topic of their own/,
  )
  expect(() => linesIn(newStack(), { source, sink: new KafkaSink(cluster, 'lines') })).toThrow(
    /is cyclic: source "lines" > sink "out" > source "lines"/,
  )
})

test('a topic of no name is refused', () => {
  expect(() => DeadLetters.topic(mskIn(newStack()), 'no topic')).toThrow(/has no name that Kafka takes/)
})
