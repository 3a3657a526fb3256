/** The five classic uses: their input, drawn from a seed, and what a plain loop over it comes to. */
import {
  type Customer,
  joinTableApp,
  type NamedOrder,
  type Order,
} from '../../../functions/classics/join-table/topology.ts'
import { type Login, type RecentLogins, recentEventsApp } from '../../../functions/classics/recent-events/topology.ts'
import { type PageViews, runningCounterApp, type View } from '../../../functions/classics/running-counter/topology.ts'
import { type Click, sessionMachineApp, type Transition } from '../../../functions/classics/session-machine/topology.ts'
import {
  type CustomerTotals,
  type Purchase,
  userAggregateApp,
} from '../../../functions/classics/user-aggregate/topology.ts'
import type { Topology } from '../../../lib/index.ts'
import type { Random } from '../../../lib/testing/simulator/random.ts'

/** What one use is given, in the order in which its parts are sent: each is processed before the next. */
export type Part = {
  readonly source: string
  readonly key: (value: never) => string
  readonly values: readonly object[]
}

export interface Use {
  readonly name: string
  readonly topology: Topology
  /** Its folder below functions/classics. */
  readonly folder: string
  readonly parts: readonly Part[]
  /** What it must come to: facts as text. */
  readonly expected: ReadonlySet<string>
  /** The same facts, of what came out. */
  readonly facts: (outputs: ReadonlyMap<string, readonly unknown[]>) => ReadonlySet<string>
}

const startMs = Date.UTC(2026, 2, 1)
const minuteMs = 60_000
const text = (...of: readonly unknown[]): string => JSON.stringify(of)
const many = <T>(count: number, make: (index: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, i) => make(i))

/** The last value of each key. */
function lastOf<T>(values: readonly T[], key: (value: T) => string): readonly T[] {
  return [...new Map(values.map((value) => [key(value), value])).values()]
}

export function classicUses(random: Random, events: number, keys: number): readonly Use[] {
  return [
    runningCounter(random.fork('views'), events, keys),
    recentEvents(random.fork('logins'), events, keys),
    sessionMachine(random.fork('clicks'), events, keys),
    userAggregate(random.fork('purchases'), events, keys),
    joinTable(random.fork('orders'), events, keys),
  ]
}

function runningCounter(random: Random, events: number, keys: number): Use {
  const values = many(events, (): View => ({ page: `/page/${random.integer(1, keys)}` }))
  const count = new Map<string, number>()
  const expected = new Set<string>()
  for (const { page } of values) {
    count.set(page, (count.get(page) ?? 0) + 1)
    expected.add(text(page, count.get(page)))
  }
  return {
    ...{ name: 'running counter', topology: runningCounterApp, folder: 'running-counter', expected },
    parts: [{ source: 'views', key: ({ page }: View) => page, values }],
    facts: (outputs) => {
      const views = (outputs.get('page-views') ?? []) as readonly PageViews[]
      return new Set(views.map((view) => text(view.page, view.views)))
    },
  }
}

function recentEvents(random: Random, events: number, keys: number): Use {
  const values = many(
    events,
    (i): Login => ({ account: `account-${random.integer(1, keys)}`, atMs: startMs + i, address: `10.0.0.${i % 250}` }),
  )
  const accounts = new Set(values.map(({ account }) => account))
  const expected = new Set(
    [...accounts].map((account) =>
      text(
        account,
        ...values
          .filter((login) => login.account === account)
          .slice(-5)
          .map(({ atMs }) => atMs),
      ),
    ),
  )
  return {
    ...{ name: 'recent-event list', topology: recentEventsApp, folder: 'recent-events', expected },
    parts: [{ source: 'logins', key: ({ account }: Login) => account, values }],
    facts: (outputs) => {
      const lists = (outputs.get('recent-logins') ?? []) as readonly RecentLogins[]
      const last = lastOf(lists, ({ account }) => account)
      return new Set(last.map(({ account, logins }) => text(account, ...logins.map(({ atMs }) => atMs))))
    },
  }
}

/** Facts are numbers of each transition and refusal per visitor. */
function sessionMachine(random: Random, events: number, keys: number): Use {
  const values = many(events, (i): Click => {
    const action = random.pick(['view', 'view', 'add', 'pay'] as const)
    return { visitor: `visitor-${random.integer(1, keys)}`, atMs: startMs + i * minuteMs, action }
  })
  const seen: unknown[][] = []
  const sessions = new Map<string, { at: string; untilMs: number }>()
  for (const { visitor, atMs, action } of values) {
    const session = sessions.get(visitor)
    const from = session !== undefined && atMs < session.untilMs ? session.at : 'new'
    const to = action === 'pay' ? 'paid' : action === 'add' || from === 'basket' ? 'basket' : 'browsing'
    if (action === 'pay' && from !== 'basket') seen.push([visitor, 'refused'])
    else {
      if (from !== to) seen.push([visitor, from, to])
      sessions.set(visitor, { at: to, untilMs: atMs + 30 * minuteMs })
    }
  }
  return {
    ...{
      name: 'session state machine',
      topology: sessionMachineApp,
      folder: 'session-machine',
      expected: counted(seen),
    },
    parts: [{ source: 'clicks', key: ({ visitor }: Click) => visitor, values }],
    facts: (outputs) => {
      const moved = (outputs.get('transitions') ?? []) as readonly Transition[]
      const refused = (outputs.get('refused-clicks') ?? []) as readonly Click[]
      return counted([
        ...moved.map(({ visitor, from, to }) => [visitor, from, to]),
        ...refused.map(({ visitor }) => [visitor, 'refused']),
      ])
    },
  }
}

function counted(facts: readonly (readonly unknown[])[]): ReadonlySet<string> {
  const counts = new Map<string, number>()
  for (const fact of facts) counts.set(text(...fact), (counts.get(text(...fact)) ?? 0) + 1)
  return new Set([...counts].map(([fact, count]) => `${fact} ${count} times`))
}

function userAggregate(random: Random, events: number, keys: number): Use {
  const values = many(
    events,
    (): Purchase => ({ customer: `customer-${random.integer(1, keys)}`, cents: random.integer(1, 10_000) }),
  )
  const expected = new Set(
    [...new Set(values.map(({ customer }) => customer))].map((customer) => {
      const cents = values.filter((purchase) => purchase.customer === customer).map((purchase) => purchase.cents)
      return text(
        customer,
        cents.length,
        cents.reduce((sum, amount) => sum + amount, 0) / cents.length,
        Math.max(...cents),
      )
    }),
  )
  return {
    ...{ name: 'per-user aggregate', topology: userAggregateApp, folder: 'user-aggregate', expected },
    parts: [{ source: 'purchases', key: ({ customer }: Purchase) => customer, values }],
    facts: (outputs) => {
      const totals = lastOf((outputs.get('customer-totals') ?? []) as readonly CustomerTotals[], (t) => t.customer)
      return new Set(totals.map((t) => text(t.customer, t.purchases, t.meanCents, t.largestCents)))
    },
  }
}

/** Half of the customers are known when the first orders come, all of them when the last ones do. */
function joinTable(random: Random, events: number, keys: number): Use {
  const customer = (i: number): Customer => ({
    customer: `customer-${i}`,
    name: `Name ${i}`,
    country: i % 2 === 0 ? 'CH' : 'AT',
  })
  const all = many(keys, (i) => customer(i + 1))
  const [early, late] = [all.slice(0, Math.ceil(keys / 2)), all.slice(Math.ceil(keys / 2))]
  const order = (i: number): Order => ({
    order: `order-${i}`,
    customer: `customer-${random.integer(1, keys)}`,
    cents: i,
  })
  const orders = many(events, order)
  const [first, second] = [orders.slice(0, Math.floor(events / 2)), orders.slice(Math.floor(events / 2))]
  const named = (list: readonly Order[], known: readonly Customer[]) =>
    list.map((o) => {
      const { name = null, country = null } = known.find((row) => row.customer === o.customer) ?? {}
      return text(o.order, name, country)
    })
  const key = (value: { readonly customer: string }): string => value.customer
  return {
    ...{ name: 'join key table', topology: joinTableApp, folder: 'join-table' },
    expected: new Set([...named(first, early), ...named(second, all)]),
    parts: [
      { source: 'customers', key, values: early },
      { source: 'orders', key, values: first },
      { source: 'customers', key, values: late },
      { source: 'orders', key, values: second },
    ],
    facts: (outputs) => {
      const rows = (outputs.get('named-orders') ?? []) as readonly NamedOrder[]
      return new Set(rows.map((row) => text(row.order, row.name, row.country)))
    },
  }
}
