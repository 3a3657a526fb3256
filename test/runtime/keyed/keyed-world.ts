/** A keyed stage that counts, with states of every kind that the tests need; its source is stood in for by frames. */
import { z } from 'zod'
import { listState, mapState, operatorState, type StepContext, Topology, valueState } from '../../../lib/index.ts'
import { StageWorld } from '../stage-world.ts'

const schema = z.object({ key: z.string(), n: z.number(), text: z.string().optional() })
export type Value = z.infer<typeof schema>

export const states = {
  sum: valueState<number>(),
  last: listState<number>({ atMost: 3 }),
  byEntry: mapState<number>(),
  blob: valueState<string>(),
  seen: operatorState<number, Value>({ initial: 0, add: (count) => count + 1 }),
}

export type Context = StepContext<string, typeof states, Record<string, never>>

export type Step = (value: Value, context: Context) => unknown[] | undefined

/** Adds up, and tells the sum so far. */
export const adding: Step = (value, { key, state }) => {
  const sum = (state.sum.get() ?? 0) + value.n
  state.sum.set(sum)
  return [{ key, n: value.n, sum }]
}

export interface KeyedOptions {
  readonly prefetch?: (value: Value) => { byEntry: string[] }
}

/** `values` > keyBy `by-key` > process `adder` > sink `out` and, keyed again, the stage `by-parity`. */
export function adder(step: Step = adding, { prefetch }: KeyedOptions = {}) {
  const app = new Topology('adder-app')
  const out = app.sink<unknown>('out')
  const source = app.source('values', schema)
  const added = source
    .keyBy('by-key', (value) => value.key, { slots: 1 })
    .process('adder', {
      state: states,
      ...(prefetch && { prefetch }),
      step: (value, context) => step(value, context as Context),
    })
  added.to(out)
  added
    .keyBy('by-parity', (value) => ((value as Value).n % 2 === 0 ? 'even' : 'odd'))
    .aggregate('count', { init: () => 0, add: (n) => n + 1, result: (n) => n }, { emit: 'on-update' })
    .to(app.sink<number>('counts'))
  const world = new StageWorld(app, 'by-key')
  return { app, source, out, world, received: () => world.memory.received(out) }
}

export const value = (key: string, n: number): Value => ({ key, n })
