import { GetFunctionConfigurationCommand, InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda'
import type { KinesisPort } from '../../../lib/aws/kinesis/destination.ts'
import { DeployedFunction } from '../../../lib/local/dead-letters/lambda.ts'
import type { OriginalRecord } from '../../../lib/local/dead-letters/record.ts'

const bindings = {
  formatVersion: 1,
  topology: 'app',
  sources: [{ name: 'orders', kind: 'kinesis', streamArn: 'arn:aws:kinesis:eu-west-1:000000000000:stream/orders' }],
  sinks: [],
  deadLetters: { kind: 'sqs', queueUrl: 'https://sqs/0/q' },
}
const record: OriginalRecord = {
  ...{ kind: 'kinesis', source: 'orders', partition: 'shardId-000000000000', position: '7', subPosition: 1 },
  ...{ arrivalTimeMs: 1_500, key: 'aw==', payload: 'e30=', headers: [] },
  redrive: { ownMarkMs: 1_400, applied: false },
}

interface Call {
  readonly command: InvokeCommand
  readonly settings: unknown
}

/** Lambda with one function, of the given configuration and answer. */
function lambda(configuration: object, answer: () => object = () => ({})) {
  const calls: Call[] = []
  const client = {
    async send(command: unknown, settings: unknown) {
      if (command instanceof GetFunctionConfigurationCommand) return configuration
      if (!(command instanceof InvokeCommand)) throw new Error('nothing else may be asked')
      calls.push({ command, settings })
      return answer()
    },
  } as unknown as LambdaClient
  return { client, calls }
}

const variables = (value: string) => ({ Timeout: 30, Environment: { Variables: { MILLRACE_BINDINGS: value } } })
const configured = variables(JSON.stringify(bindings))
const bytes = (value: unknown) => Buffer.from(JSON.stringify(value))

test('the function is invoked for its answer, with the event of its source, and given its own time and 15 seconds', async () => {
  const { client, calls } = lambda(configured, () => ({ Payload: bytes({ batchItemFailures: [] }) }))
  const own = await DeployedFunction.open(client, 'orders-fn:live')
  expect(await own.invoke(record)).toEqual({ kind: 'answered', payload: { batchItemFailures: [] } })
  const [{ command, settings }] = calls as [Call]
  expect(settings).toEqual({ requestTimeout: 45_000 })
  expect(command.input).toMatchObject({ FunctionName: 'orders-fn:live', InvocationType: 'RequestResponse' })
  expect(JSON.parse(Buffer.from(command.input.Payload as Uint8Array).toString())).toMatchObject({
    Records: [
      {
        eventID: 'shardId-000000000000:7',
        eventSourceARN: 'arn:aws:kinesis:eu-west-1:000000000000:stream/orders',
        awsRegion: 'eu-west-1',
        kinesis: { sequenceNumber: '7', partitionKey: 'k', data: 'e30=', approximateArrivalTimestamp: 1.5 },
        millrace: { subPosition: 1 },
      },
    ],
    millrace: { redrive: { ownMarkMs: 1_400, applied: false } },
  })
})

test('a function error is named by its class alone: its message and a strange class may quote the record', async () => {
  const outcomeOf = async (payload: unknown) => {
    const { client } = lambda(configured, () => ({ FunctionError: 'Unhandled', Payload: bytes(payload) }))
    return (await DeployedFunction.open(client, 'f')).invoke(record)
  }
  expect(await outcomeOf({ errorType: 'Sandbox.Timedout', errorMessage: 'secret' })).toEqual({
    kind: 'function-error',
    reason: 'the function failed (Sandbox.Timedout): its log says why',
  })
  for (const payload of [{ errorType: 'a secret' }, null, 'secret']) {
    const reason = 'the function failed (an error without a type): its log says why'
    expect(await outcomeOf(payload)).toEqual({ kind: 'function-error', reason })
  }
})

test('dead letters of keyed stages go to the streams that the function writes to, with as many slots as it is told', async () => {
  const streamArn = 'arn:aws:kinesis:eu-west-1:000000000000:stream/app-by-customer'
  const feeds = [{ stage: 'by-customer', slots: 4, streamArn }]
  const { client } = lambda(variables(JSON.stringify({ ...bindings, feeds })))
  const puts: unknown[] = []
  const kinesis: KinesisPort = {
    async send({ input }) {
      puts.push(input)
      return { Records: [{}] } as never
    },
  }
  const streams = (await DeployedFunction.open(client, 'orders-fn')).keyedStreams(kinesis, () =>
    Promise.reject(new Error('no topic')),
  )
  expect(streams.slotsOf('by-customer')).toBe(4)
  expect(streams.slotsOf('by-city')).toEqual({
    reason:
      'it failed in the keyed stage "by-city", which the function orders-fn does not feed: name with --function one that does',
  })
  await streams.publish('by-customer', { slot: 1, bytes: Buffer.from('frame') })
  const ExplicitHashKey = String(2n ** 126n)
  expect(puts).toEqual([
    { StreamARN: streamArn, Records: [{ Data: Buffer.from('frame'), PartitionKey: '1', ExplicitHashKey }] },
  ])
})

test('a throttle, a lost answer and a time-out are no answers', async () => {
  const { client } = lambda(configured, () => {
    throw Object.assign(new Error('Rate exceeded\nmore'), { name: 'TooManyRequestsException' })
  })
  const own = await DeployedFunction.open(client, 'f')
  expect(await own.invoke(record)).toEqual({ kind: 'not-run', reason: 'TooManyRequestsException: Rate exceeded' })
})

test.each([
  ['another program', {}, 'its environment has no MILLRACE_BINDINGS'],
  ['one whose environment cannot be decrypted', { Environment: { Error: { Message: 'no key' } } }, 'no key'],
  ['one of a newer format', variables('{"formatVersion":2}'), 'format version 2, and this release of Millrace reads 1'],
  ['one with a variable that was edited', variables('{'), 'format version undefined'],
])('%s is refused with the reason', async (_what, configuration, reason) => {
  await expect(DeployedFunction.open(lambda(configuration).client, 'f')).rejects.toThrow(reason)
})
