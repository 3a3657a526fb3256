/**
 * What the simulated application does, and what is sent to it. The topology has two stages, in some runs three; it uses
 * every kind of state, and all of its outputs tell much about the state they were made from.
 *
 * ```text
 * orders -> check -> (seen-orders)
 *                 -> lines of an order -> by-user: ledger -> (entries), alerts -> (alerts), -> by-item: stock -> (stock)
 *                                                  once -> (firsts)
 *                                                  on-update -> (updates), per-batch -> (latest)
 * ```
 */
import { days, milliseconds, minutes } from '../../core/duration.ts'
import { TerminalError } from '../../core/errors.ts'
import { type Format, json } from '../../core/format.ts'
import { sideOutput } from '../../operators/keyed/side-output.ts'
import { aggregatingState, listState, mapState, operatorState, reducingState, valueState } from '../../state/states.ts'
import { epochMs } from '../../time/event-time.ts'
import type { KeyedStream, Stream } from '../../topology/stream.ts'
import { Topology } from '../../topology/topology.ts'
import { addBriefs } from './briefs.ts'
import type { Line } from './lines.ts'
import type { Random } from './random.ts'
import type { Variant } from './variant.ts'

export interface Order {
  readonly order: string
  readonly atMs: number
  /** What the feeding stage does that meets it. */
  readonly fails: 'never' | 'always' | 'for good' | 'kills'
  readonly lines: readonly Line[]
}

/** What the ledger says of each line. */
export interface Entry {
  readonly user: string
  readonly line: string
  readonly item: string
  readonly cents: number
  readonly total: number
  readonly held: number | null
  readonly holds: readonly string[] | null
  readonly recent: readonly string[]
  readonly biggest: number
  readonly mean: number
  /** Lines since the last long pause, in event time and in the log's arrival time. */
  readonly lately: number
  readonly arrivedLately: number
  readonly inSlot: number
}

export const names = {
  topology: 'simulated',
  source: 'orders',
  keyed: 'by-user',
  second: 'by-item',
  alertEveryCents: 2_000,
  recentLines: 5,
  /** After so long without a write a state is gone. */
  latelyMs: 20_000,
} as const

/** What a redeploy adds. */
export const added = { operator: 'later', outputs: 'later-tallies', sink: 'audited-orders' } as const

/** What a sink never takes: outputs that become dead letters. */
export const isRejected = (sink: string, cents: number): boolean => sink === 'firsts' && cents % 50 === 7

export const userSlots = 8
export const itemSlots = 4

/**
 * The application in one of two versions that are compatible with each other: a redeploy changes from one to the other. The
 * second keeps one more state, and what the changes say. Steps are pure: they may be run any number of times.
 */
export function simulatedTopology(version: 0 | 1, { hasThirdStage, hasBriefs, changes, kill }: Variant): Topology {
  const isSecond = version === 1
  const app = new Topology(names.topology)
  const orders = app.source(names.source, json() as Format<Order>, {
    eventTime: epochMs(({ atMs }: Order) => atMs),
    outOfOrderness: minutes(1),
  })
  const seenOrders = app.sink<{ order: string; lines: number }>('seen-orders', { key: ({ order }) => order })
  const entries = app.sink<Entry>('entries', { key: ({ user }) => user })
  const alerts = app.sink<{ user: string; total: number }>('alerts', { key: ({ user }) => user })

  const checked = orders.map((order) => check(order, kill))
  checked.map(({ order, lines }) => ({ order, lines: lines.length })).to(seenOrders)
  if (isSecond && changes.sink) addAudit(app, checked)
  const byUser = checked.flatMap(({ lines }) => lines).keyBy(names.keyed, ({ user }) => user, { slots: userSlots })

  const ledger = byUser.process('ledger', {
    state: {
      total: valueState<number>(),
      items: mapState<number>(),
      recent: listState<string>({ atMost: names.recentLines }),
      biggest: reducingState<number>((a, b) => Math.max(a, b)),
      mean: aggregatingState<number, { sum: number; count: number }, number>({
        init: () => ({ sum: 0, count: 0 }),
        add: ({ sum, count }, cents) => ({ sum: sum + cents, count: count + 1 }),
        result: ({ sum, count }) => sum / count,
      }),
      lately: valueState<number>({ ttl: { by: 'event-time', after: milliseconds(names.latelyMs) } }),
      arrivedLately: valueState<number>({ ttl: { by: 'processing-time', after: milliseconds(names.latelyMs) } }),
      inSlot: operatorState<number, Line>({ initial: 0, add: (count) => count + 1 }),
      ...(isSecond ? { visits: valueState<number>() } : {}),
    },
    sides: { alerts: sideOutput<{ user: string; total: number }>() },
    // Some entries are loaded with the batch; the others are missed by the step, loaded, and the step runs again.
    prefetch: ({ item }: Line) => (item < 'item-6' ? { items: [item] } : {}),
    step: (line: Line, { key, state, sides }) => {
      if (line.fails === 'always') throw new Error('this line always fails')
      if (line.fails === 'for good') throw new TerminalError('this line fails for good')
      if (line.fails === 'kills') kill()
      const before = state.total.get() ?? 0
      const total = before + line.cents
      state.total.set(total)
      if (line.does === 'add') state.items.set(line.item, (state.items.get(line.item) ?? 0) + 1)
      if (line.does === 'remove') state.items.delete(line.item)
      state.recent.add(line.line)
      state.biggest.add(line.cents)
      state.mean.add(line.cents)
      state.lately.set((state.lately.get() ?? 0) + 1)
      state.arrivedLately.set((state.arrivedLately.get() ?? 0) + 1)
      if (Math.floor(total / names.alertEveryCents) > Math.floor(before / names.alertEveryCents)) {
        sides.alerts.emit({ user: key, total })
      }
      const visits = (state as { visits?: { get(): number | undefined; set(count: number): void } }).visits
      visits?.set((visits.get() ?? 0) + 1)
      const entry: Entry = {
        user: key,
        line: line.line,
        item: line.item,
        cents: line.cents,
        total,
        held: line.does === 'audit' ? null : (state.items.get(line.item) ?? null),
        holds: line.does === 'audit' ? [...state.items.entries()].map(([item, count]) => `${item}=${count}`) : null,
        recent: state.recent.get(),
        biggest: state.biggest.get() ?? 0,
        mean: state.mean.get() ?? 0,
        lately: state.lately.get() ?? 0,
        arrivedLately: state.arrivedLately.get() ?? 0,
        inSlot: state.inSlot.get(),
      }
      return [entry]
    },
  })
  ledger.to(entries)
  ledger.sides.alerts.to(alerts)
  addTallies(app, byUser)
  if (hasBriefs) addBriefs(app, byUser)
  if (isSecond && changes.operator) addLater(app, byUser)
  if (hasThirdStage && (isSecond || !changes.stage)) addThirdStage(app, ledger, hasBriefs)
  return app
}

/** The operators that keep one thing each. */
function addTallies(app: Topology, byUser: KeyedStream<Line>): void {
  const firsts = app.sink<Line>('firsts', { key: ({ user }) => user })
  const updates = app.sink<Tally>('updates', { key: ({ user }) => user })
  const latest = app.sink<Tally>('latest', { key: ({ user }) => user })
  byUser
    .deduplicate('once', { by: ({ line }) => line, ttl: { by: 'event-time', after: days(30) } })
    .map(failBehindTheKey)
    .to(firsts)
  byUser.aggregate('on-update', tally, { emit: 'on-update' }).to(updates)
  byUser.aggregate('per-batch', tally, { emit: 'per-batch' }).to(latest)
}

function check(order: Order, kill: () => void): Order {
  if (order.fails === 'always') throw new Error('this order always fails')
  if (order.fails === 'for good') throw new TerminalError('this order fails for good')
  if (order.fails === 'kills') kill()
  return order
}

/** A sink of the stage that reads the source, which a redeploy adds. */
function addAudit(app: Topology, orders: Stream<Order>): void {
  const audited = app.sink<{ order: string; cents: number }>(added.sink, { key: ({ order }) => order })
  orders.map(({ order, lines }) => ({ order, cents: lines.reduce((sum, { cents }) => sum + cents, 0) })).to(audited)
}

/** A keyed operator with a state and a sink, which a redeploy adds. */
function addLater(app: Topology, byUser: KeyedStream<Line>): void {
  const later = app.sink<Tally>(added.outputs, { key: ({ user }) => user })
  byUser.aggregate(added.operator, tally, { emit: 'on-update' }).to(later)
}

/** A stateless step behind a keyed operator: its failure takes back what the states became. */
function failBehindTheKey(line: Line): Line {
  if (line.fails === 'behind the key') throw new Error('this line fails behind the keyed step')
  return line
}

export interface Tally {
  readonly user: string
  readonly lines: number
  readonly cents: number
}

const tally = {
  init: (): Tally => ({ user: '', lines: 0, cents: 0 }),
  add: ({ lines, cents }: Tally, line: Line): Tally => ({
    user: line.user,
    lines: lines + 1,
    cents: cents + line.cents,
  }),
  result: (value: Tally): Tally => value,
}

/** What the third stage says of an item. */
export interface Stock {
  readonly item: string
  readonly line: string
  /** Of the user that the line is of. */
  readonly total: number
  readonly lines: number
  readonly cents: number
}

/**
 * Entries go on under the key of their item, so this stage is fed by the partitions of a keyed one. Where it forgets, nothing of an
 * item stays.
 */
function addThirdStage(app: Topology, entries: Stream<Entry>, forgets: boolean): void {
  const options = forgets ? { ttl: { by: 'processing-time', after: milliseconds(names.latelyMs) } as const } : {}
  const sum = () => reducingState<number>((a, b) => a + b, options)
  const stock = app.sink<Stock>('stock', { key: ({ item }) => item })
  entries
    .map(({ item, line, cents, total }) => ({ item, line, cents, total }))
    .keyBy(names.second, ({ item }) => item, { slots: itemSlots })
    .process('stock-of-item', {
      state: { lines: sum(), cents: sum() },
      step: (entry, { key, state }) => {
        state.lines.add(1)
        state.cents.add(entry.cents)
        const { line, total } = entry
        const [lines, cents] = [state.lines.get() ?? 0, state.cents.get() ?? 0]
        return [{ item: key, line, total, lines, cents }]
      },
    })
    .to(stock)
}

/** What one record of the source is. */
export interface SourceEntry {
  /** The partition key: orders of one account keep their order. */
  readonly account: string
  /** Undefined for bytes that no decoder reads. */
  readonly order: Order | undefined
  readonly bytes: Uint8Array
}

const users = Array.from({ length: 16 }, (_, i) => `user-${i}`)
const items = Array.from({ length: 10 }, (_, i) => `item-${i}`)
const accounts = ['acme', 'bell', 'corp', 'dune', 'echo', 'fern']

/** The records that are sent to the source. They depend on the random numbers alone, never on the schedule. */
export function sourceRecords(random: Random, startMs: number): readonly SourceEntry[] {
  const count = random.integer(60, 120)
  const hasPoison = random.chance(0.5)
  const poison = <Kind extends string>(kinds: readonly Kind[], share: number): Kind | 'never' =>
    hasPoison && random.chance(share) ? random.pick(kinds) : 'never'
  // To find a record that ends the process takes minutes of retries, so there are few.
  const killers = new Set(Array.from({ length: random.pick([0, 0, 0, 1, 2]) }, () => random.integer(0, count - 1)))
  const sent: SourceEntry[] = []
  for (let i = 0; i < count; i++) {
    const account = random.pick(accounts)
    const again = random.chance(0.05) ? random.pick(sent.length > 0 ? sent : [undefined])?.order : undefined
    const lines = Array.from({ length: random.pick([0, 1, 1, 2, 2, 3]) }, (_, at): Line => {
      const cents = random.integer(1, 999)
      // A square makes few users frequent.
      const user = users[Math.floor(random.next() ** 2 * users.length)] as string
      const does = random.pick(['add', 'add', 'add', 'remove', 'audit'] as const)
      const kills = killers.has(i) && at === 0
      const fails = kills ? 'kills' : poison(['always', 'for good', 'behind the key'] as const, 0.02)
      return { line: `${i}.${at}`, user, item: random.pick(items), cents, does, fails }
    })
    const killsFirst = killers.has(i) && lines.length === 0
    const order: Order = {
      order: `order-${i}`,
      atMs: startMs + i * 1_000 - random.integer(0, 30_000),
      fails: killsFirst ? 'kills' : poison(['always', 'for good'] as const, 0.015),
      lines: again ? again.lines : lines,
    }
    const isBroken = hasPoison && random.chance(0.01)
    const bytes = Buffer.from(isBroken ? `{"order":"order-${i}"` : JSON.stringify(order))
    sent.push({ account, order: isBroken ? undefined : order, bytes })
  }
  return sent
}
