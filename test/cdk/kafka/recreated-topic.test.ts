/** What synth says of a topic that is deleted and made again, where nothing could notice. */
import type { Stack } from 'aws-cdk-lib'
import { Annotations, Match } from 'aws-cdk-lib/assertions'
import { AttributeType, TableV2 } from 'aws-cdk-lib/aws-dynamodb'
import {
  bind,
  CustomSink,
  DynamoDbTableSink,
  KafkaSource,
  KinesisSource,
  StreamApplication,
} from '../../../lib/cdk/index.ts'
import { Topology, text } from '../../../lib/index.ts'
import { entry, newStack, newStream } from '../world.ts'
import { clusterArn, linesIn, mskIn } from './world.ts'

const saidOf = (stack: Stack) =>
  Annotations.fromStack(stack)
    .findInfo('*', Match.stringLikeRegexp('made again'))
    .map(({ id, entry: { data } }) => `${id} ${data}`)

const tableIn = (stack: Stack) =>
  new DynamoDbTableSink(new TableV2(stack, 'Rows', { partitionKey: { name: 'id', type: AttributeType.STRING } }))

it('is said of a topic whose records become rows of a table, with what to do', () => {
  const stack = newStack()
  linesIn(stack, { source: new KafkaSource(mskIn(stack), 'lines'), sink: tableIn(stack) })
  expect(saidOf(stack)).toEqual([
    expect.stringMatching(
      `^/Test/App/lines stage "lines" reads ${clusterArn}, topic lines and writes to the table of the sink "out".*give the source another name then, or key the stream`,
    ),
  ])
})

it('is not said of a stream, of another sink, nor of a stage that keeps progress', () => {
  const [stream, other, keeps] = [newStack(), newStack(), newStack()]
  linesIn(stream, { source: new KinesisSource(newStream(stream, 'In')), sink: tableIn(stream) })
  linesIn(other, { source: new KafkaSource(mskIn(other), 'lines'), sink: new CustomSink() })
  const app = new Topology('counts-app')
  const lines = app.source('lines', text())
  const rows = app.sink<string>('rows')
  lines.to(rows)
  lines
    .keyBy('by-line', (line) => line)
    .reduce('last', (_, line) => line, { emit: 'on-update' })
    .to(rows)
  new StreamApplication(keeps, 'App', {
    topology: app,
    entry,
    bind: [bind(lines, new KafkaSource(mskIn(keeps, { brokers: ['b-1:9098'] }), 'lines')), bind(rows, tableIn(keeps))],
  })
  for (const stack of [stream, other, keeps]) expect(saidOf(stack)).toEqual([])
})
