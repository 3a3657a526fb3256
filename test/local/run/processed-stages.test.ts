import { z } from 'zod'
import { Topology } from '../../../lib/index.ts'
import { ProcessedStages } from '../../../lib/local/run/processed-stages.ts'
import { plan } from '../../../lib/plan/plan.ts'

const order = z.object({ customer: z.string() })

/** "orders" and "returns" feed "by-customer", which feeds "by-total"; "visits" stands alone. */
function stages() {
  const app = new Topology('app')
  const out = app.sink<number>('out')
  const seen = app.sink<z.infer<typeof order>>('seen')
  const [orders, returns, visits] = ['orders', 'returns', 'visits'].map((name) => app.source(name, order))
  if (!orders || !returns || !visits) throw new Error('three sources')
  const counting = { init: () => 0, add: (count: number) => count + 1, result: (count: number) => count }
  orders
    .merge(returns)
    .keyBy('by-customer', ({ customer }) => customer)
    .aggregate('per-customer', counting, { emit: 'on-update' })
    .keyBy('by-total', String)
    .aggregate('per-total', counting, { emit: 'on-update' })
    .to(out)
  visits.to(seen)
  return plan(app).stages
}

/** Each stage is done with whatever was in its stream before a time. */
function world() {
  const clock = { now: 1_000, nowMs: () => clock.now }
  const doneUntilMs = new Map<string, number>()
  const asked: [string, number][] = []
  const hasProcessed = (stage: string) => (sinceMs: number) => {
    asked.push([stage, sinceMs])
    return (doneUntilMs.get(stage) ?? 0) > sinceMs
  }
  return { clock, doneUntilMs, asked, processed: new ProcessedStages(stages(), hasProcessed, clock) }
}

test('a keyed stage is done only with what its feeders had published when they were done', () => {
  const { clock, doneUntilMs, processed } = world()
  for (const stage of ['orders', 'returns', 'visits']) doneUntilMs.set(stage, 501)
  // The keyed stages had read all of their streams, but before the stages that feed them were done.
  for (const stage of ['by-customer', 'by-total']) doneUntilMs.set(stage, 999)
  expect(processed.since(500)).toBe(false)
  clock.now = 2_000
  doneUntilMs.set('by-customer', 1_001)
  doneUntilMs.set('by-total', 1_500)
  expect(processed.since(500)).toBe(false)
  doneUntilMs.set('by-total', 2_001)
  expect(processed.since(500)).toBe(true)
})

test('the last of several feeders counts, and a stage that keeps nothing counts too', () => {
  const { clock, doneUntilMs, asked, processed } = world()
  doneUntilMs.set('orders', 501)
  expect(processed.since(500)).toBe(false)
  expect(asked.map(([stage]) => stage)).not.toContain('by-customer')
  clock.now = 3_000
  doneUntilMs.set('returns', 501)
  processed.since(500)
  expect(asked).toContainEqual(['by-customer', 3_000])
  doneUntilMs.set('by-customer', 3_001)
  doneUntilMs.set('by-total', 3_001)
  expect(processed.since(500)).toBe(false)
  doneUntilMs.set('visits', 501)
  expect(processed.since(500)).toBe(true)
})

test('moments are asked about apart, and few are remembered', () => {
  const { doneUntilMs, asked, processed } = world()
  doneUntilMs.set('orders', 501)
  for (let sinceMs = 400; sinceMs < 500; sinceMs++) processed.since(sinceMs)
  const before = asked.length
  // The last moment knows that "orders" is done; the first is forgotten and asks again.
  processed.since(499)
  expect(asked.slice(before).map(([stage]) => stage)).toEqual(['returns', 'visits'])
  processed.since(400)
  expect(asked.slice(before + 2).map(([stage]) => stage)).toEqual(['orders', 'returns', 'visits'])
})
