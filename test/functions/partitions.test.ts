import { measuredRides, partitionsApp, type Ride, rides } from '../../functions/partitions/topology.ts'
import { streamHandler } from '../../lib/index.ts'
import { kinesisEvent, lambdaContext, memoryPorts, sequenceNumber, TestDriver } from '../../lib/testing/index.ts'

const ride: Ride = { ride: 'ride-1', driver: 'driver-1', meters: 9_000, seconds: 1_200 }

test('a ride gets its speed, and the coordinates of the record that it came from', async () => {
  const ports = memoryPorts()
  const event = kinesisEvent([ride], { shardId: 'shardId-000000000007' })
  expect(await streamHandler(partitionsApp, { ports })(event, lambdaContext())).toEqual({ batchItemFailures: [] })
  const position = sequenceNumber(0)
  expect(ports.received(measuredRides)).toEqual([
    {
      identity: `rides/shardId-000000000007/${position}/0/0`,
      ride: 'ride-1',
      driver: 'driver-1',
      kilometersPerHour: 27,
      shard: 'shardId-000000000007',
      position,
    },
  ])
})

test('a ride that never moved is left out, one that is impossible is a dead letter', async () => {
  const driver = new TestDriver(partitionsApp)
  await driver.send(rides, [{ ...ride, meters: 0 }, { ...ride, seconds: 0 }, ride])
  expect(driver.received(measuredRides)).toHaveLength(1)
  expect(driver.deadLetters.map(({ reason }) => reason.code)).toEqual(['invalid'])
})
