/** A deployment meets what the one before it has sent to its stages, and a part of it what the other part sends already. */
import type { KinesisStreamEvent } from 'aws-lambda'
import { z } from 'zod'
import { streamHandler } from '../../lib/aws/handler/stream-handler.ts'
import { type SinkHandle, type Stream, Topology, valueState } from '../../lib/index.ts'
import { kinesisEvent, lambdaContext } from '../../lib/testing/events.ts'
import { memoryPorts } from '../../lib/testing/memory-ports.ts'

interface Release {
  readonly app: Topology
  readonly out: SinkHandle<string>
}

type Payment = { readonly k: string; readonly cents: bigint; readonly currency: string }

const wire = z.object({ k: z.string(), euros: z.number() })

/** Adds the amounts of a key, in the layout of the values that the newest release has. */
function summed(app: Topology, payments: Stream<Payment>, version: 1 | 2 | 3): Release {
  const out = app.sink<string>('out')
  const key = ({ k }: Payment) => k
  const fromEuros = (old: { readonly k: string; readonly euros: number }) => ({
    k: old.k,
    cents: BigInt(Math.round(old.euros * 100)),
  })
  const inEuro = (old: Omit<Payment, 'currency'>) => {
    if (old.cents < 0n) throw new Error('no such payment')
    return { ...old, currency: 'EUR' }
  }
  const keyed =
    version === 3
      ? payments.keyBy('by-key', key, { version, upcast: { 1: fromEuros, 2: inEuro } })
      : payments.keyBy('by-key', key, version === 2 ? { version, upcast: { 1: fromEuros as never } } : {})
  keyed
    .process('sum', {
      state: { cents: valueState<bigint>() },
      step({ cents, currency }, { key: k, state }) {
        const sum = (state.cents.get() ?? 0n) + cents
        state.cents.set(sum)
        return [`${k} ${sum} ${currency}`]
      },
    })
    .to(out)
  return { app, out }
}

/** The release whose values are of that version. */
function release(version: 1 | 2 | 3): Release {
  const app = new Topology('app')
  const source = app.source('payments', wire)
  const values = source.map((payment): object => {
    if (version === 1) return payment
    const cents = BigInt(Math.round(payment.euros * 100))
    return version === 2 ? { k: payment.k, cents } : { k: payment.k, cents, currency: 'USD' }
  })
  return summed(app, values as Stream<Payment>, version)
}

class Deployments {
  readonly ports = memoryPorts()
  #sent = 0

  /** The source's function of a release takes in a payment. */
  async feed({ app }: Release, euros: number): Promise<void> {
    const event = kinesisEvent([{ k: 'a', euros }], { firstIndex: this.#sent++ })
    expect(await this.#run(app, event)).toEqual({ batchItemFailures: [] })
  }

  /** The keyed stage's function of a release takes what is there; what goes back is answered, to come again. */
  async take({ app }: Release, events = this.ports.takeFrames('by-key')): Promise<readonly KinesisStreamEvent[]> {
    const back: KinesisStreamEvent[] = []
    for (const event of events) {
      const { batchItemFailures } = await this.#run(app, event)
      if (batchItemFailures.length > 0) back.push(event)
    }
    return back
  }

  #run(app: Topology, event: KinesisStreamEvent) {
    return streamHandler(app, { ports: this.ports })(event, lambdaContext())
  }
}

test('values of the releases before go through the upcasters, one after the other, with the state that is there', async () => {
  const deployments = new Deployments()
  const newest = release(3)
  for (const [version, euros] of [
    [1, 0.29],
    [2, 2],
    [3, 3],
  ] as const)
    await deployments.feed(release(version), euros)
  expect(await deployments.take(newest)).toEqual([])
  expect(deployments.ports.received(newest.out)).toEqual(['a 29 EUR', 'a 229 EUR', 'a 529 USD'])
})

test('while a deployment rolls out, a stage of the release before waits for values that it does not know', async () => {
  const deployments = new Deployments()
  await deployments.feed(release(2), 1)
  await deployments.feed(release(3), 2)
  const waiting = await deployments.take(release(2))
  expect(waiting).toHaveLength(1)
  expect(deployments.ports.deadLettered).toEqual([])
  const said = deployments.ports.lines.map(({ fields }) => `${fields.code}: ${fields.message}`)
  expect(said.join()).toContain('newer-schema: a frame for stage "by-key" has values of the schema version 3')
  const newest = release(3)
  expect(await deployments.take(newest, waiting)).toEqual([])
  expect(deployments.ports.received(newest.out)).toEqual(['a 100 undefined', 'a 300 USD'])
})

test('a value that its upcaster throws on is a dead letter with the version that it has', async () => {
  const deployments = new Deployments()
  const newest = release(3)
  for (const version of [1, 2] as const) {
    await deployments.feed(release(version), -1)
    let waiting = await deployments.take(newest)
    while (waiting.length > 0) waiting = await deployments.take(newest, waiting)
  }
  await deployments.feed(release(2), 1)
  await deployments.take(newest)
  const [first, second] = deployments.ports.deadLettered
  expect(first?.reason).toMatchObject({ message: 'no such payment', attempts: 3 })
  expect(first?.keyed).not.toHaveProperty('schemaVersion')
  expect(second?.keyed).toMatchObject({ schemaVersion: 2 })
  expect(Buffer.from(second?.payload ?? '', 'base64').toString()).toBe(`$${'{"k":"a","cents":{"$bigint":"-100"}}'}`)
  expect(deployments.ports.received(newest.out)).toEqual(['a 100 EUR'])
})
