/** The payments of the demo on Kafka: what is kept of each is the same as on Kinesis, whatever is killed and handed on. */

import { Books } from '../../../bin/demos/payments/books.ts'
import { paymentsApp, paymentsRejected, paymentsValidated } from '../../../functions/payments/topology.ts'
import { deadLetterOutput } from '../../../lib/local/run/resources.ts'
import { KafkaApplication, type Mode } from './kafka-application.ts'

const modes: readonly Mode[] = ['on-demand', 'provisioned']
const seeds = [1, 2, 3]
const nowMs = Date.UTC(2026, 2, 2, 12)

test.each(modes.flatMap((mode) => seeds.map((seed) => [mode, seed] as const)))(
  'every payment is validated, rejected or a dead letter, once: %s, seed %d',
  async (mode, seed) => {
    const app = new KafkaApplication(paymentsApp, { mode, seed, nowMs })
    const books = new Books()
    // From 1,000 on: one of a thousand is no payment, and that one is to be among them.
    books.sent = 1_000
    const records = books.next(400)
    books.sent = records.length
    app.produce(
      'payments',
      records.map(({ partitionKey, value }) => ({
        partition: app.random.integer(0, 2),
        key: Buffer.from(partitionKey),
        value: Buffer.from(JSON.stringify(value)),
      })),
    )
    await app.start()
    await app.settle()
    await app.stop()
    const bytes = (values: readonly unknown[]) => values.map((value) => ({ data: Buffer.from(JSON.stringify(value)) }))
    books.take(paymentsValidated.name, bytes(app.memory.received(paymentsValidated)))
    books.take(paymentsRejected.name, bytes(app.memory.received(paymentsRejected)))
    books.take(deadLetterOutput, bytes(app.memory.deadLettered))
    expect({ lost: books.lost, repeats: books.repeats, misplaced: books.misplaced }).toEqual({
      lost: 0,
      repeats: 0,
      misplaced: 0,
    })
    expect(books.counts['dead letter']).toBe(1)
    expect(app.met.rebalances + app.met.kills).toBeGreaterThan(0)
  },
)
