/** S8 and S18: the five classic uses on the test driver. No test here sets up a key: the records say it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  customers,
  joinTableApp,
  namedOrders,
  type Order,
  orders,
} from '../../functions/classics/join-table/topology.ts'
import { logins, recentEventsApp, recentLogins } from '../../functions/classics/recent-events/topology.ts'
import { pageViews, runningCounterApp, views } from '../../functions/classics/running-counter/topology.ts'
import {
  type Click,
  clicks,
  refusedClicks,
  sessionMachineApp,
  transitions,
} from '../../functions/classics/session-machine/topology.ts'
import { customerTotals, purchases, userAggregateApp } from '../../functions/classics/user-aggregate/topology.ts'
import { TestDriver } from '../../lib/testing/index.ts'

const startMs = Date.UTC(2026, 2, 1)
const minuteMs = 60_000

test.each(['running-counter', 'recent-events', 'session-machine', 'user-aggregate', 'join-table'])(
  'S8: %s takes less than 40 lines of user code',
  (name) => {
    const text = readFileSync(join(__dirname, '../../functions/classics', name, 'topology.ts'), 'utf8')
    const lines = text.split('\n').filter((line) => line.trim() !== '')
    expect(lines.length).toBeGreaterThan(10)
    expect(lines.length).toBeLessThan(40)
  },
)

test('running counter: each page is counted by itself, over batches', async () => {
  const driver = new TestDriver(runningCounterApp)
  await driver.send(views, [{ page: 'home' }, { page: 'cart' }, { page: 'home' }])
  await driver.send(views, [{ page: 'home' }])
  const of = (page: string) => driver.received(pageViews).flatMap((count) => (count.page === page ? count.views : []))
  expect(of('home')).toEqual([1, 2, 3])
  expect(of('cart')).toEqual([1])
})

test('recent events: the last five logins of an account, the newest last', async () => {
  const driver = new TestDriver(recentEventsApp)
  const login = (i: number, account = 'ann') => ({ account, atMs: startMs + i, address: `10.0.0.${i}` })
  await driver.send(
    logins,
    [1, 2, 3, 4, 5, 6].map((i) => login(i)),
  )
  await driver.send(logins, [login(7, 'bea')])
  const [bea, ann] = ['bea', 'ann'].map((name) => driver.received(recentLogins).findLast((r) => r.account === name))
  expect(ann?.logins.map(({ address }) => address)).toEqual([2, 3, 4, 5, 6].map((i) => `10.0.0.${i}`))
  expect(bea?.logins).toEqual([login(7, 'bea')])
})

test('session state machine: what a state does not allow goes to its own output and changes nothing', async () => {
  const driver = new TestDriver(sessionMachineApp)
  const click = (action: Click['action'], afterMinutes: number): Click => ({
    visitor: 'v-1',
    atMs: startMs + afterMinutes * minuteMs,
    action,
  })
  await driver.send(clicks, [click('view', 0), click('pay', 1), click('view', 2), click('add', 3), click('pay', 4)])
  expect(driver.received(transitions).map(({ from, to }) => `${from} > ${to}`)).toEqual([
    'new > browsing',
    'browsing > basket',
    'basket > paid',
  ])
  expect(driver.received(refusedClicks)).toEqual([click('pay', 1)])
})

test('session state machine: after 30 minutes of silence a visit begins anew', async () => {
  const driver = new TestDriver(sessionMachineApp)
  const at = (afterMinutes: number, action: Click['action']) => ({
    visitor: 'v-1',
    atMs: startMs + afterMinutes * minuteMs,
    action,
  })
  await driver.send(clicks, [at(0, 'add'), at(29, 'view'), at(59, 'pay')])
  expect(driver.received(transitions)).toEqual([{ visitor: 'v-1', from: 'new', to: 'basket' }])
  expect(driver.received(refusedClicks)).toEqual([at(59, 'pay')])
})

test('per-user aggregate: of a batch, the last result of each customer', async () => {
  const driver = new TestDriver(userAggregateApp)
  const buy = (customer: string, cents: number) => ({ customer, cents })
  await driver.send(purchases, [buy('ann', 100), buy('bea', 50), buy('ann', 300)])
  expect(driver.received(customerTotals)).toHaveLength(2)
  await driver.send(purchases, [buy('ann', 200)])
  expect(driver.received(customerTotals).at(-1)).toEqual({
    customer: 'ann',
    purchases: 3,
    meanCents: 200,
    largestCents: 300,
  })
})

test('join key table: an order gets the row of its customer as it is by then, and null before the first', async () => {
  const driver = new TestDriver(joinTableApp)
  const order = (id: string, customer = 'c-1'): Order => ({ order: id, customer, cents: 1 })
  await driver.send(orders, [order('early')])
  await driver.send(customers, [{ customer: 'c-1', name: 'Ann', country: 'CH' }])
  await driver.send(orders, [order('named'), order('foreign', 'c-2')])
  await driver.send(customers, [{ customer: 'c-1', name: 'Ann B.', country: 'AT' }])
  await driver.send(orders, [order('renamed')])
  const rows = driver.received(namedOrders).map(({ order: id, name, country }) => [id, name, country])
  expect(new Map(rows.map(([id, ...row]) => [id, row]))).toEqual(
    new Map([
      ['early', [null, null]],
      ['named', ['Ann', 'CH']],
      ['foreign', [null, null]],
      ['renamed', ['Ann B.', 'AT']],
    ]),
  )
  expect(driver.deadLetters).toEqual([])
})
