/** How the handler knows a redrive. */
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { kafkaEvent, kinesisEvent, lambdaContext } from '../../../lib/testing/events.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { rides } from '../../testing/rides.ts'

const done = { batchItemFailures: [] }
const ann = { driver: 'ann', city: 'Bern', km: 2 }
const mark = (redrive: unknown = { ownMarkMs: null, applied: false }) => ({ millrace: { redrive } })
const signal = new AbortController().signal

async function world() {
  const parts = rides()
  const ports = memoryPorts()
  const handler = streamHandler(parts.app, { ports })
  const event = kinesisEvent([ann])
  expect(await handler(event, lambdaContext())).toEqual(done)
  const take = async () => {
    for (const frames of ports.takeFrames('by-driver')) expect(await handler(frames, lambdaContext())).toEqual(done)
  }
  await take()
  const kmOfAnn = async () => {
    const entry = { key: 'ann', state: 'driver-state.kmByCity', entry: 'Bern' }
    const [item] = (await ports.state('by-driver')?.readEntries([entry], signal)) ?? []
    return item?.value
  }
  return { ...parts, ports, handler, event, take, kmOfAnn }
}

test('a stage that is past a record takes it for done, unless the event says that it is a redrive', async () => {
  const { handler, event, take, kmOfAnn } = await world()
  expect(await handler(event, lambdaContext())).toEqual(done)
  await take()
  expect(await kmOfAnn()).toBe(2)
  for (const _ of [1, 2]) {
    expect(await handler({ ...event, ...mark() }, lambdaContext())).toEqual(done)
    await take()
    expect(await kmOfAnn()).toBe(4)
  }
})

test('a redrive of a Kafka record is known as well, and what is applied already is applied no more', async () => {
  const { handler, ports, take, kmOfAnn } = await world()
  const event = kafkaEvent({ 'rides-0': [{ offset: 5, value: ann }] })
  expect(await handler({ ...event, ...mark({ ownMarkMs: 1, applied: true }) }, lambdaContext())).toEqual(done)
  expect(ports.takeFrames('by-driver')).toEqual([])
  expect(await handler({ ...event, ...mark({ ownMarkMs: 1, applied: false }) }, lambdaContext())).toEqual(done)
  await take()
  expect(await kmOfAnn()).toBe(4)
})

test('a redriven record that fails is named, as in any batch', async () => {
  const { app, ports, event } = await world()
  const frames = () => ({ publish: () => Promise.reject(new Error('refused')) })
  const handler = streamHandler(app, { ports: { ...ports, frames } })
  const [{ kinesis }] = event.Records as [(typeof event.Records)[0]]
  expect(await handler({ ...event, ...mark() }, lambdaContext())).toEqual({
    batchItemFailures: [{ itemIdentifier: kinesis.sequenceNumber }],
  })
})

test.each([
  ['nothing of it', undefined],
  ['no own mark', { applied: false }],
  ['an own mark that is none', { ownMarkMs: 'yesterday', applied: false }],
  ['not whether it is applied', { ownMarkMs: null }],
])('an event that says that it is a redrive and %s fails as a whole', async (_what, redrive) => {
  const { handler, event } = await world()
  await expect(handler({ ...event, millrace: { redrive } }, lambdaContext())).rejects.toMatchObject({
    code: 'malformed-event',
  })
})

test('a keyed stage takes no redrive by its function: its dead letters go to its stream', async () => {
  const { handler, ports, event } = await world()
  await handler({ ...event, ...mark() }, lambdaContext())
  const [frames] = ports.takeFrames('by-driver')
  await expect(handler({ ...frames, ...mark() }, lambdaContext())).rejects.toMatchObject({
    code: 'redrive-of-keyed-stage',
  })
})
