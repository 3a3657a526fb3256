/**
 * Five ways to ask for a row per record. The compiler refuses each of them: `npm run types` fails as soon as one of the lines below
 * `@ts-expect-error` is accepted. Whoever silences the compiler is refused by the runtime, which takes no promise for a value.
 */
import { Order } from '../../../functions/enrichment/topology.ts'
import {
  lookup,
  type SinkHandle,
  type SourceStream,
  seconds,
  staticTable,
  streamHandler,
  Topology,
} from '../../../lib/index.ts'
import { kinesisEvent, lambdaContext, memoryPorts } from '../../../lib/testing/index.ts'

/** The call that must not be made once per record. */
const fetchTier = async (customer: string): Promise<string> => `tier of ${customer}`
const table = staticTable('tiers', () => new Map([['customer-1', 'gold']]))
const loaded = lookup('loaded-tiers', { load: async () => new Map<string, string>(), ttl: seconds(5) })

type Step = (orders: SourceStream<Order, Order>, out: SinkHandle<unknown>) => void

const steps: Readonly<Record<string, Step>> = {
  'an async map': (orders, out) => {
    // @ts-expect-error a step's value is no promise
    orders.map(async (order) => ({ ...order, tier: await fetchTier(order.customer) })).to(out)
  },
  'an async flatMap': (orders, out) => {
    // @ts-expect-error a promise cannot be iterated
    orders.flatMap(async (order) => [await fetchTier(order.customer)]).to(out)
  },
  'an async filter': (orders, out) => {
    // @ts-expect-error a predicate answers at once
    orders.filter(async (order) => (await fetchTier(order.customer)) === 'gold').to(out)
  },
  'an async key': (orders, out) => {
    // @ts-expect-error a key is text
    orders.enrich({ from: loaded, key: async (order) => order.customer, join: (order) => order }).to(out)
  },
  'an async join': (orders, out) => {
    // @ts-expect-error what is joined is no promise
    orders.enrich({ from: table, key: (o) => o.customer, join: async (o) => fetchTier(o.customer) }).to(out)
  },
}

/** What became of one order. */
export interface Refusal {
  readonly step: string
  /** The dead letter's reason; undefined where the step was not refused. */
  readonly code: string | undefined
  readonly message: string
  /** Whether anything reached the sink. */
  readonly reachedSink: boolean
}

/** Runs each step on one order, in the handler that would be deployed. */
export async function refusals(): Promise<readonly Refusal[]> {
  const order: Order = { order: 'order-1', customer: 'customer-1', article: 'article-1', country: 'AT' }
  return Promise.all(
    Object.entries(steps).map(async ([step, build]) => {
      const topology = new Topology('refused')
      const out = topology.sink<unknown>('refused-out')
      build(topology.source('orders', Order), out)
      const ports = memoryPorts()
      await streamHandler(topology, { ports })(kinesisEvent([order]), lambdaContext())
      const [letter] = ports.deadLettered
      const reachedSink = ports.received(out).length > 0
      return { step, code: letter?.reason.code, message: letter?.reason.message ?? '', reachedSink }
    }),
  )
}
