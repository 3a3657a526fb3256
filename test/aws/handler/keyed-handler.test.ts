import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { kinesisEvent, lambdaContext } from '../../../lib/testing/events.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { type Ride, rides } from '../../testing/rides.ts'

const done = { batchItemFailures: [] }
const rideOf = (driver: string, city: string, km = 1): Ride => ({ driver, city, km })

function world() {
  const parts = rides()
  const ports = memoryPorts()
  const handler = streamHandler(parts.app, { ports })
  let sent = 0
  return {
    ...parts,
    ports,
    handler,
    async send(...values: Ride[]) {
      const answer = await handler(kinesisEvent(values, { firstIndex: sent }), lambdaContext())
      sent += values.length
      return answer
    },
    /** Invokes the handler with what waits for a keyed stage. */
    async take(stage: string) {
      const answers = []
      for (const event of ports.takeFrames(stage)) answers.push(await handler(event, lambdaContext()))
      return answers
    },
  }
}

const identifierOf = (event: ReturnType<typeof kinesisEvent> | undefined, index = 0) => ({
  batchItemFailures: [{ itemIdentifier: event?.Records[index]?.kinesis.sequenceNumber }],
})

test('one handler serves the source and every keyed stage, each found by its own stream', async () => {
  const { send, take, ports, drivers, cities } = world()
  expect(await send(rideOf('ann', 'Bern', 2), rideOf('bob', 'Bern'), rideOf('ann', 'Bern', 3))).toEqual(done)
  expect(ports.received(drivers)).toEqual([])
  for (const answer of await take('by-driver')) expect(answer).toEqual(done)
  expect(ports.received(drivers)).toEqual(
    expect.arrayContaining([
      { driver: 'ann', city: 'Bern', km: 2 },
      { driver: 'ann', city: 'Bern', km: 5 },
      { driver: 'bob', city: 'Bern', km: 1 },
    ]),
  )
  expect(await take('by-city')).toEqual([done])
  expect(ports.received(cities)).toEqual([1, 2, 3])
})

test('frames are taken once, one event per shard, and a batch that comes again changes nothing', async () => {
  const { send, handler, ports, drivers } = world()
  const many = Array.from({ length: 40 }, (_, i) => rideOf(`driver-${i}`, 'Bern'))
  await send(...many)
  const events = ports.takeFrames('by-driver')
  expect(events.map(({ Records }) => Records[0]?.eventID.split(':')[0])).toEqual([
    'shardId-000000000000',
    'shardId-000000000001',
  ])
  expect(ports.takeFrames('by-driver')).toEqual([])
  for (const event of [...events, ...events]) expect(await handler(event, lambdaContext())).toEqual(done)
  expect(ports.received(drivers)).toHaveLength(40)
})

test('a record that throws a RetryableError in a keyed step goes back: its frame is named and nothing behind it is committed', async () => {
  const { send, handler, ports, drivers, world: faults, later } = world()
  faults.fault = later()
  await send(rideOf('ann', 'Bern'))
  await send(rideOf('ann', 'Trouble'))
  await send(rideOf('ann', 'Chur'))
  // Behind the first frame a mark was told, to each of the two shards.
  const [event, other] = ports.takeFrames('by-driver')
  expect([event?.Records.length, other?.Records.length]).toEqual([4, 1])
  for (const _ of [1, 2, 3, 4, 5]) expect(await handler(event, lambdaContext())).toEqual(identifierOf(event, 2))
  expect(ports.received(drivers).map(({ city }) => city)).toEqual(['Bern'])
  expect(ports.deadLettered).toEqual([])
  faults.fault = undefined
  expect(await handler(event, lambdaContext())).toEqual(done)
  expect(ports.received(drivers).map(({ city }) => city)).toEqual(['Bern', 'Trouble', 'Chur'])
})

test('a record whose keyed step keeps throwing is reported until its attempts are used up, then a dead letter; the key goes on', async () => {
  const { send, handler, ports, drivers, world: faults } = world()
  faults.fault = new Error('no such city')
  await send(rideOf('ann', 'Bern'))
  await send(rideOf('ann', 'Trouble'))
  await send(rideOf('ann', 'Chur'))
  const [event] = ports.takeFrames('by-driver')
  const answers = []
  for (const _ of [1, 2, 3]) answers.push(await handler(event, lambdaContext()))
  expect(answers).toEqual([identifierOf(event, 2), identifierOf(event, 2), identifierOf(event, 2)])
  expect(ports.deadLettered).toEqual([])
  expect(await handler(event, lambdaContext())).toEqual(done)
  expect(ports.deadLettered).toMatchObject([{ reason: { message: 'no such city' } }])
  expect(ports.received(drivers).map(({ city }) => city)).toEqual(['Bern', 'Chur'])
})

test('asking for the frames of a stage that is none says which there are', async () => {
  const { send, ports } = world()
  expect(() => ports.takeFrames('by-driver')).toThrow('there are none yet')
  await send(rideOf('ann', 'Bern'))
  expect(() => ports.takeFrames('by-town')).toThrow(
    'no keyed stage "by-town" was served with these ports: there are by-driver, by-city.',
  )
})

test('an event that names no source belongs to the only one, though there are keyed stages beside it', async () => {
  const { send } = world()
  expect(await send(rideOf('ann', 'Bern'))).toEqual(done)
})

test('a second handler of the topology goes on with the state of the first: nothing is kept in the handler', async () => {
  const { app, send, take, ports, drivers } = world()
  await send(rideOf('ann', 'Bern', 2))
  await take('by-driver')
  const second = streamHandler(app, { ports })
  await send(rideOf('ann', 'Bern', 3))
  for (const event of ports.takeFrames('by-driver')) expect(await second(event, lambdaContext())).toEqual(done)
  expect(ports.received(drivers).at(-1)).toEqual({ driver: 'ann', city: 'Bern', km: 5 })
})

test('a bundle that was made without a state table says so, each time', async () => {
  const { send } = world()
  process.env.MILLRACE_ADAPTER_STATE_DYNAMODB = 'false'
  try {
    for (const _ of [1, 2]) {
      await expect(send(rideOf('ann', 'Bern'))).rejects.toThrow('the bundle cannot run stage "rides"')
    }
  } finally {
    delete process.env.MILLRACE_ADAPTER_STATE_DYNAMODB
  }
  expect(await send(rideOf('ann', 'Bern'))).toEqual(done)
})
