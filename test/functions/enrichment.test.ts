import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { refusals } from '../../bin/demos/enrichment/refused-steps.ts'
import { enrichedOrders, enrichmentApp, type Order, orders } from '../../functions/enrichment/topology.ts'
import { TestDriver } from '../../lib/testing/index.ts'

const order: Order = { order: 'order-1', customer: 'customer-1', article: 'article-1', country: 'AT' }

describe('with a reference service', () => {
  const asked: unknown[] = []
  let list = 1
  const server = createServer(async (request: IncomingMessage, response) => {
    if (request.url === '/prices') response.end(JSON.stringify([['article-1', { cents: 100 + list, list }]]))
    else {
      asked.push(JSON.parse(await text(request)))
      response.end(JSON.stringify([['customer-1', { tier: 'gold' }]]))
    }
  })
  beforeAll(async () => {
    await new Promise<void>((go) => server.listen(0, '127.0.0.1', go))
    process.env.REFERENCE_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  beforeEach(() => {
    asked.length = 0
    list = 1
  })
  afterAll(async () => {
    delete process.env.REFERENCE_URL
    server.closeAllConnections()
    await new Promise((go) => server.close(go))
  })

  test('an order gets its country, its price and its customer', async () => {
    const driver = new TestDriver(enrichmentApp)
    await driver.send(orders, [order])
    expect(driver.received(enrichedOrders)).toEqual([
      {
        ...order,
        ...{ countryName: 'Austria', vatPercent: 20, priceCents: 101, priceList: 1, priceAgeMs: 0 },
        ...{ tier: 'gold', tierAgeMs: 0 },
      },
    ])
  })

  test('what no table knows is left open, and the order goes on', async () => {
    const driver = new TestDriver(enrichmentApp)
    await driver.send(orders, [{ ...order, customer: 'customer-2', article: 'article-2', country: 'QQ' }])
    const [enriched] = driver.received(enrichedOrders)
    expect(enriched).toMatchObject({ order: 'order-1', countryName: undefined, priceCents: undefined, tier: undefined })
  })

  test('customers are asked for once per batch, all together, and again only after their time is over', async () => {
    const driver = new TestDriver(enrichmentApp)
    const other = { ...order, order: 'order-2', customer: 'customer-2' }
    await driver.send(orders, [order, other, { ...order, order: 'order-3' }])
    expect(asked).toEqual([['customer-1', 'customer-2']])
    await driver.send(orders, [order])
    expect(asked).toHaveLength(1)
    await driver.clock.advance(5_000)
    await driver.send(orders, [order])
    expect(asked).toEqual([['customer-1', 'customer-2'], ['customer-1']])
    expect(driver.ports.counted('lookup-hits')).toBe(1)
    expect(driver.ports.counted('lookup-misses')).toBe(3)
  })

  test('an order says how old its price is, and one that is too old is not used', async () => {
    const driver = new TestDriver(enrichmentApp)
    await driver.send(orders, [order])
    await driver.clock.advance(900)
    await driver.send(orders, [order])
    expect(driver.ports.measured('table-staleness')).toBe(900)
    list = 2
    await driver.clock.advance(10_000)
    await driver.send(orders, [order])
    const prices = driver.received(enrichedOrders).map(({ priceList, priceAgeMs }) => ({ priceList, priceAgeMs }))
    expect(prices).toEqual([
      { priceList: 1, priceAgeMs: 0 },
      { priceList: 1, priceAgeMs: 900 },
      { priceList: 2, priceAgeMs: 0 },
    ])
  })
})

test('every way to make a call per record is refused at run time; the compiler refuses them in their own file', async () => {
  const refused = await refusals()
  expect(refused.map(({ step }) => step)).toEqual([
    'an async map',
    'an async flatMap',
    'an async filter',
    'an async key',
    'an async join',
  ])
  for (const { code, reachedSink } of refused) expect([code, reachedSink]).toEqual(['asynchronous-step', false])
})
