import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { euroCents, rates } from '../../functions/payments/rates.ts'
import type { Payment } from '../../functions/payments/schema.ts'
import { settlementSink } from '../../functions/payments/settlement.ts'
import { payments, paymentsApp, paymentsRejected, paymentsValidated } from '../../functions/payments/topology.ts'
import { provide, streamHandler } from '../../lib/index.ts'
import { kinesisEvent, lambdaContext, memoryPorts, sequenceNumber, TestDriver } from '../../lib/testing/index.ts'

const payment: Payment = { payment: 'payment-1', account: 'account-1', amountMinor: 1_999, currency: 'USD' }
const always = new AbortController().signal

test('a payment is converted and published as validated', async () => {
  const driver = new TestDriver(paymentsApp)
  await driver.send(payments, [payment])
  // 1,999 cents at 0.8614 euro are 1,721.9386 euro cents.
  expect(driver.received(paymentsValidated)).toEqual([{ ...payment, amountEuroCents: 1_722 }])
  expect(driver.received(paymentsRejected)).toEqual([])
})

test.each([
  [{ amountMinor: 0 }, 'amount-not-positive', 'the amount 0 is not above 0'],
  [{ amountMinor: -5 }, 'amount-not-positive', 'the amount -5 is not above 0'],
  [{ currency: 'XXX' }, 'unknown-currency', 'there is no rate for XXX'],
  [{ currency: 'EUR', amountMinor: 100_000_001 }, 'amount-too-high', '100000001 euro cents are above 100000000'],
])('%j is published as rejected, with its reason and as it came', async (changes, reason, message) => {
  const driver = new TestDriver(paymentsApp)
  const wrong = { ...payment, ...changes }
  await driver.send(payments, [wrong, payment])
  expect(driver.received(paymentsRejected)).toEqual([{ payment: 'payment-1', reason, message, original: wrong }])
  expect(driver.received(paymentsValidated)).toHaveLength(1)
})

test('a payment of the wrong shape is a dead letter, and the next one goes on', async () => {
  const driver = new TestDriver(paymentsApp)
  await driver.send(payments, [{ ...payment, amountMinor: 19.99 }, payment])
  expect(driver.deadLetters.map(({ reason }) => reason.code)).toEqual(['invalid'])
  expect(driver.received(paymentsValidated)).toHaveLength(1)
})

describe('euro cents', () => {
  test.each([
    ['half a cent goes to the even neighbour below', 1, { microEuros: 25_000, minorDigits: 0 }, 2],
    ['half a cent goes to the even neighbour above', 1, { microEuros: 35_000, minorDigits: 0 }, 4],
    ['yen have no minor unit', 10_000, { microEuros: 5_520, minorDigits: 0 }, 5_520],
    ['dinars have three digits, and 280.5 goes to 280', 1_000, { microEuros: 2_805_000, minorDigits: 3 }, 280],
  ])('%s', (_, amount, rate, expected) => {
    expect(euroCents(amount, rate)).toBe(expected)
  })

  test('are never further than half a cent from the exact value', () => {
    const anyRate = fc.constantFrom(...rates.values())
    fc.assert(
      fc.property(
        fc.maxSafeInteger().filter((amount) => amount > 0),
        anyRate,
        (amount, rate) => {
          const divisor = 10_000n * 10n ** BigInt(rate.minorDigits)
          const exact = BigInt(amount) * BigInt(rate.microEuros)
          const cents = euroCents(amount, rate)
          fc.pre(Number.isSafeInteger(cents))
          const off = exact - BigInt(cents) * divisor
          expect((off < 0n ? -off : off) * 2n).toBeLessThanOrEqual(divisor)
        },
      ),
    )
  })
})

describe('the settlement service as a sink of the user’s own', () => {
  const taken: { path: string | undefined; items: unknown }[] = []
  let status = 204
  const server = createServer(async (request: IncomingMessage, response) => {
    taken.push({ path: request.url, items: JSON.parse(await text(request)) })
    response.writeHead(status).end()
  })
  beforeAll(async () => {
    await new Promise<void>((go) => server.listen(0, '127.0.0.1', go))
    process.env.SETTLEMENT_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  beforeEach(() => {
    taken.length = 0
    status = 204
  })
  afterAll(async () => {
    delete process.env.SETTLEMENT_URL
    server.closeAllConnections()
    await new Promise((go) => server.close(go))
  })

  const handle = (ports: ReturnType<typeof memoryPorts>) =>
    streamHandler(paymentsApp, { ports, sinks: [provide(paymentsValidated, settlementSink('/validated'))] })

  test('takes all of a batch in one call', async () => {
    const second = { ...payment, payment: 'payment-2' }
    const answer = await handle(memoryPorts())(kinesisEvent([payment, second]), lambdaContext())
    expect(answer).toEqual({ batchItemFailures: [] })
    const settled = (one: Payment) => [one.payment, { ...one, amountEuroCents: 1_722 }]
    expect(taken).toEqual([{ path: '/validated', items: [settled(payment), settled(second)] }])
  })

  test('what it refuses goes back to the source', async () => {
    status = 503
    const ports = memoryPorts()
    const answer = await handle(ports)(kinesisEvent([payment]), lambdaContext())
    expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: sequenceNumber(0) }] })
    expect(ports.deadLettered).toEqual([])
  })

  test.each([
    ['an address where nobody answers', 'http://127.0.0.1:9'],
    ['no address', ''],
  ])('%s is a retry of every item, not a dead letter', async (_, url) => {
    const address = process.env.SETTLEMENT_URL
    process.env.SETTLEMENT_URL = url
    const outcomes = await settlementSink('/validated').deliver([['payment-1', payment]], { signal: always })
    process.env.SETTLEMENT_URL = address
    expect(outcomes).toMatchObject([
      { status: 'retry', error: { message: 'the settlement service cannot be reached' } },
    ])
  })
})
