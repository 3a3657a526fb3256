/** What the compiler must accept and refuse: `tsc` is the test, and each `@ts-expect-error` fails it where there is no error. */
import { z } from 'zod'
import { bytes, text } from '../../lib/core/format.ts'
import { otherwise } from '../../lib/operators/branch.ts'
import { staticTable } from '../../lib/operators/enrich/table.ts'
import { epochMs } from '../../lib/time/event-time.ts'
import type { SourceHandle } from '../../lib/topology/handles.ts'
import type { Stream } from '../../lib/topology/stream.ts'
import { Topology } from '../../lib/topology/topology.ts'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Value<S> = S extends Stream<infer T> ? T : never
const check = <_T extends true>(): void => undefined

interface Card {
  readonly kind: 'card'
  readonly number: string
}
interface Cash {
  readonly kind: 'cash'
  readonly coins: number
}
type Payment = Card | Cash

const isCard = (payment: Payment): payment is Card => payment.kind === 'card'
const app = new Topology('types')
const amounts = app.source('amounts', z.object({ amount: z.string().transform(Number), at: z.number() }), {
  eventTime: epochMs((value: { at: number }) => value.at),
})
const payments = app.source('payments', text()).map((line): Payment => JSON.parse(line) as Payment)

test('a source has the type that its schema makes, and takes the one that it reads', () => {
  check<Equal<Value<typeof amounts>, { amount: number; at: number }>>()
  check<typeof amounts extends SourceHandle<{ amount: string; at: number }> ? true : false>()
  check<Equal<Value<ReturnType<typeof bytesSource>>, Uint8Array>>()
})
const bytesSource = () => new Topology('b').source('raw', bytes())

test('a source without a schema or a format is no source', () => {
  // @ts-expect-error a source needs a schema or a format
  expect(() => new Topology('x').source('y', {})).toThrow('neither a Standard Schema')
})

test('a guard narrows a filter and its arm; otherwise has what is left', () => {
  const cards = payments.filter(isCard)
  check<Equal<Value<typeof cards>, Card>>()
  const arms = payments.branch({ card: isCard, rest: otherwise })
  check<Equal<Value<typeof arms.card>, Card>>()
  check<Equal<Value<typeof arms.rest>, Cash>>()
  const plain = payments.branch({ some: (payment) => payment.kind.length > 3, rest: otherwise })
  check<Equal<Value<typeof plain.some>, Payment>>()
  check<Equal<Value<typeof plain.rest>, Payment>>()
  // @ts-expect-error there is no such arm
  expect(arms.cash).toBeUndefined()
})

test('a branch must be exhaustive', () => {
  // @ts-expect-error no arm is `otherwise`
  expect(() => payments.branch({ card: isCard })).toThrow('not exhaustive')
})

test('steps are synchronous', () => {
  // @ts-expect-error a map returns no promise
  payments.map(async (payment) => payment)
  // @ts-expect-error a predicate returns no promise
  payments.filter(async () => true)
  // @ts-expect-error a flatMap returns no promise
  payments.flatMap(async (payment) => [payment])
  const table = staticTable<number>('t', () => new Map())
  // @ts-expect-error a join returns no promise
  payments.enrich({ from: table, key: (payment) => payment.kind, join: async (payment) => payment })
  // @ts-expect-error a key is text
  payments.enrich({ from: table, key: () => 7, join: (payment) => payment })
})

test('a stream goes to a sink of its type or of a wider one, never of another', () => {
  const anyPayment = app.sink<Payment>('any-payment')
  const cardsOnly = app.sink<Card>('cards-only', { key: (card) => card.number })
  payments.to(anyPayment)
  payments.filter(isCard).to(cardsOnly)
  payments.filter(isCard).to(anyPayment)
  // @ts-expect-error not every payment is a card
  payments.to(cardsOnly)
  // @ts-expect-error a number is no payment
  payments.map(() => 7).to(anyPayment)
})

test('a merge has the types of all its streams', () => {
  const merged = payments
    .map(() => 7)
    .merge(
      payments.map(() => 'x'),
      payments.map(() => true),
    )
  check<Equal<Value<typeof merged>, number | string | boolean>>()
})
