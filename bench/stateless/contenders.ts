/** The contenders of the stateless benchmark, all writing to the same stream that takes everything at once. */
import { BatchProcessorSync, EventType, processPartialResponseSync } from '@aws-lambda-powertools/batch'
import type { PutRecordsCommandInput, PutRecordsCommandOutput } from '@aws-sdk/client-kinesis'
import type { KinesisStreamEvent, KinesisStreamRecord } from 'aws-lambda'
import { kinesisSink } from '../../lib/aws/sinks/kinesis.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { streamHandler } from '../../lib/index.ts'
import { kinesisEvent, lambdaContext, memoryPorts } from '../../lib/testing/index.ts'
import { decode, handWritten, serialise } from './hand-written.ts'
import { app, convert, converted, Payment, paymentsOf } from './pipeline.ts'

/** Runs one batch to its end. */
export type Contender = (event: KinesisStreamEvent) => Promise<unknown>

const accepted = (input: PutRecordsCommandInput): PutRecordsCommandOutput => ({
  FailedRecordCount: 0,
  Records: (input.Records ?? []).map(() => ({ SequenceNumber: '1', ShardId: 'shardId-000000000000' })),
  $metadata: {},
})

function millrace(): Contender {
  const ports = memoryPorts({ clock: systemClock })
  const sink = kinesisSink({
    client: { send: async (command) => accepted(command.input) },
    streamName: 'converted',
    clock: systemClock,
    logger: ports.logger,
  })
  const handler = streamHandler(app, {
    // As deployed: only tests freeze what they decode.
    ports: {
      ...ports,
      freezesValues: false,
      checksPurity: false,
      sourceOf: () => 'payments',
      sink: (name) => (name === converted.name ? sink : undefined),
    },
  })
  const context = lambdaContext()
  return (event) => handler(event, context)
}

/** Powertools' batch processor around the same function; what it gathers is packed as in the hand-written loop. */
function powertools(): Contender {
  return async (event) => {
    const entries: { Data: Uint8Array; PartitionKey: string }[] = []
    const processor = new BatchProcessorSync(EventType.KinesisDataStreams)
    const answer = processPartialResponseSync(
      event,
      (record: KinesisStreamRecord) => {
        const result = convert(Payment.parse(decode(record.kinesis.data)))
        entries.push({ Data: serialise(result), PartitionKey: result.id })
      },
      processor,
    )
    for (let from = 0; from < entries.length; from += 500) accepted({ Records: entries.slice(from, from + 500) })
    return answer
  }
}

/** The limit: nothing but the parser. */
function parseAlone(): Contender {
  return async (event) => {
    for (const { kinesis } of event.Records) JSON.parse(Buffer.from(kinesis.data, 'base64').toString('utf8'))
  }
}

export const contenders: Readonly<Record<'millrace' | 'hand-written' | 'powertools' | 'JSON.parse', Contender>> = {
  millrace: millrace(),
  'hand-written': handWritten(async (input) => accepted(input)),
  powertools: powertools(),
  'JSON.parse': parseAlone(),
}

/** An event of `count` records of about `bytes` bytes each, parsed from text as Lambda's runtime does. */
export const eventOf = (count: number, bytes: number): KinesisStreamEvent =>
  JSON.parse(JSON.stringify(kinesisEvent(paymentsOf(count, bytes), { source: { name: 'payments' } })))
