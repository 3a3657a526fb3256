/**
 * C07: a state is the same, and so is the output made of it, whether it was written a moment ago or
 * comes from the table. What cannot be the same is a typed error on first use.
 */
import fc from 'fast-check'
import { RetryableError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import type { KeyItem, StateStore, StateValue } from '../../lib/state/state-store.ts'
import { valueState } from '../../lib/state/states.ts'
import { checkValue } from '../../lib/state/values.ts'
import { kinesisEvent } from '../../lib/testing/events.ts'
import { Topology } from '../../lib/topology/topology.ts'
import { never } from '../aws/sink-worlds.ts'
import { bothStores } from '../state/both-stores.ts'
import { StageOnTable, stores } from './stage-on-table.ts'

type Reducer = (state: StateValue | undefined, event: number) => unknown

/** Runs the batches as a stage would: loads the key once per batch, and keeps each step's value as the store would have it. */
async function run(store: StateStore, reducer: Reducer, batches: readonly (readonly number[])[]): Promise<string[]> {
  const outputs: string[] = []
  let position = 0
  for (const batch of batches.filter(({ length }) => length > 0)) {
    const found: KeyItem | undefined = (await store.readKeys(['k'], never())).get('k')
    let state = found?.states.folded
    for (const event of batch) {
      state = checkValue(reducer(state, event), 'the state folded')
      outputs.push(JSON.stringify(state, (_, value) => (typeof value === 'bigint' ? `${value}n` : value)))
    }
    const item = {
      position: position + batch.length,
      states: { folded: state as StateValue },
      expiresAtSeconds: undefined,
    }
    await store.commit({ key: 'k', readPosition: found?.position, item, entries: [] }, never())
    position += batch.length
  }
  return outputs
}

describe.each(bothStores)('C07 on the %s store', (_, makeStore) => {
  test.each<[string, Reducer]>([
    ['a Date', (state, event) => ({ first: state ?? new Date(event) })],
    ['a Map', () => ({ seen: new Map() })],
    ['undefined', () => ({ x: undefined })],
    ['all of them', (_state, event) => ({ first: new Date(event), seen: new Map(), x: undefined })],
  ])('%s is refused on first use, however the batch is cut', async (_what, reducer) => {
    const refusal = expect.objectContaining({ name: 'TerminalError', code: 'unsupported-value' })
    for (const batches of [[[1, 2]], [[1], [2]]]) {
      await expect(run(makeStore(), reducer, batches)).rejects.toEqual(refusal)
    }
  })

  test.each<[string, Reducer]>([
    ['names in another order than they are kept', (state, event) => ({ z: event, last: state ?? null, b: 2, a: 1 })],
    ['-0', (_state, event) => event * -0],
    ['a Buffer', (_state, event) => Buffer.from([event])],
    ['bigint beside number', (state, event) => ({ big: BigInt(event), small: event, last: state ?? null })],
    [
      'a list that the step goes on to change',
      (state, event) => {
        const list = (state ?? []) as number[]
        list.push(event)
        return list
      },
    ],
  ])('%s gives the same state and output, however the batch is cut', async (_what, reducer) => {
    const whole = await run(makeStore(), reducer, [[1, 2, 3]])
    for (const batches of [
      [[1], [2], [3]],
      [[1, 2], [3]],
      [[1], [2, 3]],
    ]) {
      const store = makeStore()
      expect(await run(store, reducer, batches)).toEqual(whole)
    }
  })

  test('any state does, of any events', async () => {
    const big = fc.bigInt({ min: -(10n ** 38n), max: 10n ** 38n })
    const part = fc.oneof(fc.integer(), big, fc.string(), fc.dictionary(fc.string({ minLength: 1 }), fc.integer()))
    const usable = part.filter(
      (value) => !JSON.stringify(value, (_k, v) => (typeof v === 'bigint' ? 0 : v)).includes('__proto__'),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(usable, { minLength: 2, maxLength: 5 }), fc.nat(5), async (parts, cut) => {
        const reducer: Reducer = (state, event) => ({ z: parts[event], state: state ?? null, a: event })
        const events = parts.map((_part, i) => i)
        const whole = await run(makeStore(), reducer, [events])
        expect(await run(makeStore(), reducer, [events.slice(0, cut), events.slice(cut)])).toEqual(whole)
      }),
      { numRuns: 50 },
    )
  })
})

describe.each(stores)('C07 in a keyed stage on the %s store', (store) => {
  /** The reducer of the case: what it would keep differs by whether it was loaded, if the table kept it at all. */
  async function played(
    next: (state: unknown, line: string) => unknown,
    cuts: readonly (readonly string[])[],
    retried = false,
  ) {
    const app = new Topology('app')
    const out = app.sink<unknown>('out')
    let left = retried ? 1 : 0
    app
      .source('lines', text())
      .keyBy('by-key', () => 'k')
      .process('folding', {
        state: { folded: valueState<unknown>() },
        step(line, { state }) {
          if (line === 'e2' && left-- > 0) throw new RetryableError('once')
          state.folded.set(next(state.folded.get(), line))
          return [JSON.stringify(state.folded.get())]
        },
      })
      .to(out)
    const stage = new StageOnTable(app, store)
    let firstIndex = 0
    for (const lines of cuts) {
      await stage.send(kinesisEvent(lines, { firstIndex }))
      firstIndex += lines.length
    }
    const { signal } = new AbortController()
    return {
      received: stage.ports.received(out),
      codes: stage.ports.deadLettered.map(({ reason }) => reason.code),
      state: (await stage.ports.state('by-key')?.readKeys(['k'], signal))?.get('k')?.states,
    }
  }

  test.each<[string, (state: unknown, line: string) => unknown, readonly string[]]>([
    [
      'what the table does not return is a dead letter with a code',
      (state, line) => ({ first: Object(state).first ?? new Date(0), seen: new Map([[line, 1]]), x: undefined }),
      ['unsupported-value', 'unsupported-value'],
    ],
    ['what it returns is the same', (state, line) => ({ z: 1, first: Object(state).first ?? line, a: line }), []],
  ])('%s: as one batch, as two, and as one batch that is retried', async (_what, next, codes) => {
    const whole = await played(next, [['e1', 'e2']])
    expect(whole.codes).toEqual(codes)
    expect(await played(next, [['e1'], ['e2']])).toEqual(whole)
    expect(await played(next, [['e1', 'e2']], true)).toEqual(whole)
  })
})
