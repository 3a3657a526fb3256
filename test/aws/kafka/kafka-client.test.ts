/** What the clients do without a broker: what they are made with, and how long they wait. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { described, type KafkaConnection, openProducer, openReader } from '../../../lib/aws/kafka/kafka-client.ts'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import { VirtualClock } from '../../../lib/testing/virtual-clock.ts'
import { never } from '../sink-worlds.ts'

const message = { partition: 0, key: undefined, value: Buffer.from('a') }

describe('a broker that takes connections and says nothing', () => {
  const sockets: Socket[] = []
  let server: Server
  let connection: KafkaConnection

  beforeAll(async () => {
    server = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    connection = { bootstrapBrokers: [`127.0.0.1:${(server.address() as AddressInfo).port}`] }
  })

  afterAll(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })

  test('is given up after half a minute, unless another time is said', async () => {
    const clock = new VirtualClock()
    const producer = openProducer(connection, { clock })
    let failure: unknown
    const sent = producer.send('any', [message], never()).catch((thrown) => {
      failure = thrown
    })
    while (clock.nextWakeMs === undefined) await setImmediate()
    clock.advance(29_999)
    await setImmediate()
    expect(failure).toBeUndefined()
    clock.advance(1)
    await sent
    expect(failure).toMatchObject({ name: 'DEADLINE', passes: true, message: 'no answer within 30000 ms' })
    await producer.close()
  })
})

test.each([
  ['producer', openProducer],
  ['reader', openReader],
])('a %s with an option that the client does not know is refused, and not made without it', async (_, open) => {
  const sasl = { mechanism: 'PLAIN', user: 'a', password: 'b' } as never
  const client = open({ bootstrapBrokers: ['127.0.0.1:1'], sasl })
  await expect(client.topic('any', never())).rejects.toThrow('must NOT have additional properties')
})

test('a topic has the id that the brokers give it; where they know none, the client says zeros or the name of the topic', () => {
  expect(described('orders', { id: 'x7', partitionsCount: 3 })).toEqual({ id: 'x7', partitions: 3 })
  for (const id of ['00000000-0000-0000-0000-000000000000', 'orders']) {
    const answer = () => described('orders', { id, partitionsCount: 3 })
    expect(answer).toThrow(ConfigurationError)
    expect(answer).toThrow(expect.objectContaining({ code: 'old-brokers' }))
  }
})
