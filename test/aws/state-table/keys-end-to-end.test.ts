/** Keys and names of every kind on their whole way: keyBy, frames, steps, the table, and back. */
import { z } from 'zod'
import { type Key, keyText } from '../../../lib/state/key-encoding.ts'
import { listState, mapState, valueState } from '../../../lib/state/states.ts'
import { kinesisEvent } from '../../../lib/testing/events.ts'
import { Topology } from '../../../lib/topology/topology.ts'
import { StageOnTable, stores } from '../../cases/stage-on-table.ts'

const prototypeNames = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'valueOf',
  '__defineGetter__',
]
const longText = (bytes: number, last: string): string => 'x'.repeat(bytes - last.length) + last

const keys: readonly Key[] = [
  '',
  ' ',
  '\u0000',
  'h1',
  'H1',
  'key#h1',
  'text:h1',
  'bytes:ff',
  '["a","b"]',
  ['a', 'b'],
  ['a,b'],
  [],
  [''],
  ['', ''],
  new Uint8Array(),
  Uint8Array.of(0),
  Uint8Array.of(255, 254),
  Uint8Array.of(195, 40),
  // One letter in two forms, which are two keys; letters beyond the basic plane, of both directions, of no width.
  '\u00e9',
  'e\u0301',
  '\u6771\u4eac',
  '\u{1F9F3}',
  '\u05d0\u200f',
  '\uffff',
  ...prototypeNames,
  ...prototypeNames.map((name) => [name]),
  // The longest partition key has 2,048 bytes, of which 4 are `key#`; and texts that agree in all of them.
  longText(2_043, 'a'),
  longText(2_044, 'a'),
  longText(2_048, 'a'),
  longText(2_048, 'b'),
  longText(2_049, 'a'),
  longText(10_000, 'a'),
  longText(10_000, 'b'),
  '\u00e9'.repeat(1_024),
]

const schema = z.object({ which: z.number(), entry: z.string() })

/** Each step tells the key that it sees, how often it saw it, and what it finds in its states. */
function echo() {
  const app = new Topology('echo')
  const again = app.sink<unknown>('again')
  app
    .source('values', schema)
    .keyBy('by-key', ({ which }) => keys[which] as Key)
    .process('echo', {
      state: {
        count: valueState<number>(),
        object: valueState<{ [name: string]: string }>(),
        list: listState<string>({ atMost: 3 }),
        byEntry: mapState<string>(),
      },
      step({ which, entry }, { key, state }) {
        const count = (state.count.get() ?? 0) + 1
        state.count.set(count)
        state.list.add(entry)
        const before = state.byEntry.get(entry) ?? 'nothing'
        state.byEntry.set(entry, `${which} in ${entry}`)
        // The table cannot hold an object with the name "__proto__"; every other name of a prototype it can.
        if (entry !== '__proto__' && entry !== '') state.object.set({ ...state.object.get(), [entry]: entry })
        return [{ which, key: keyText(key as Key), count, before, names: Object.keys(state.object.get() ?? {}) }]
      },
    })
    .keyBy('by-key-again', ({ which }) => keys[which] as Key)
    .aggregate('echoes', { init: () => 0, add: (n) => n + 1, result: (n) => n }, { emit: 'on-update' })
    .to(again)
  return { app, again }
}

describe.each(stores)('on the %s store', (store) => {
  test('every key is one of its own', async () => {
    const app = new Topology('keys')
    const out = app.sink<string>('out')
    app
      .source('values', schema)
      .keyBy('by-key', ({ which }) => keys[which] as Key)
      .process('counting', {
        state: { count: valueState<number>(), first: valueState<number>() },
        step({ which }, { key, state }) {
          const count = (state.count.get() ?? 0) + 1
          state.count.set(count)
          if (count === 1) state.first.set(which)
          return [`${which} is ${keyText(key)}, ${count} of ${state.first.get()}`]
        },
      })
      .to(out)
    const stage = new StageOnTable(app, store)
    const all = keys.map((_, which) => ({ which, entry: '' }))
    await stage.send(kinesisEvent(all))
    await stage.send(kinesisEvent(all, { firstIndex: all.length }))
    expect(stage.ports.deadLettered).toEqual([])
    const told = (count: number) => keys.map((key, which) => `${which} is ${keyText(key)}, ${count} of ${which}`)
    expect(stage.ports.received(out).toSorted()).toEqual([...told(1), ...told(2)].toSorted())
  })

  test('entries and names within values are as free as keys are', async () => {
    const { app, again } = echo()
    const stage = new StageOnTable(app, store)
    const entries = [
      '',
      ' ',
      '#',
      'map#x',
      '\u{1F9F3}',
      ...prototypeNames,
      longText(1_024, 'a'),
      longText(1_024, 'b'),
      longText(5_000, 'a'),
    ]
    const which = [0, keys.indexOf('__proto__'), keys.indexOf('constructor')]
    const all = entries.flatMap((entry) => which.map((key) => ({ which: key, entry })))
    await stage.send(kinesisEvent(all), ['by-key', 'by-key-again'])
    await stage.send(kinesisEvent(all, { firstIndex: all.length }), ['by-key', 'by-key-again'])
    expect(stage.ports.deadLettered).toEqual([])
    const counts = Array.from({ length: 2 * entries.length }, (_, i) => i + 1)
    expect(stage.ports.received(again).toSorted((a, b) => Number(a) - Number(b))).toEqual(
      counts.flatMap((count) => which.map(() => count)),
    )
    for (const key of which) {
      const kept = await stage.ports
        .state('by-key')
        ?.listEntries(keyText(keys[key] as Key), 'echo.byEntry', new AbortController().signal)
      expect(new Map([...(kept ?? [])].map(([entry, { value }]) => [entry, value]))).toEqual(
        new Map(entries.map((entry) => [entry, `${key} in ${entry}`])),
      )
      const item = await stage.ports
        .state('by-key')
        ?.readKeys([keyText(keys[key] as Key)], new AbortController().signal)
      const states = item?.get(keyText(keys[key] as Key))?.states
      expect(states).toMatchObject({ 'echo.count': counts.length, 'echo.list': entries.slice(-3) })
      expect(Object.keys(Object(states)['echo.object'] as object).toSorted()).toEqual(
        entries.filter((entry) => entry !== '' && entry !== '__proto__').toSorted(),
      )
    }
  })
})

test('states are never named like prototypes, nor without a name', () => {
  for (const name of ['', '__proto__', 'a b', 'a#b', '\u00e9']) {
    const app = new Topology('names')
    const keyed = app.source('values', schema).keyBy('by-key', ({ entry }) => entry)
    const state = Object.fromEntries([[name, valueState<number>()]])
    expect(() => keyed.process('counting', { state, step: () => [] })).toThrow(
      `${JSON.stringify(name)} cannot name a state of process "counting"`,
    )
  }
  for (const name of ['constructor', 'toString', 'hasOwnProperty']) {
    const app = new Topology('names')
    const keyed = app.source('values', schema).keyBy('by-key', ({ entry }) => entry)
    const state = Object.fromEntries([[name, valueState<number>()]])
    expect(() => keyed.process('counting', { state, step: () => [] })).not.toThrow()
  }
})

test('a state that has the name of a method of objects is a state like any other', async () => {
  const app = new Topology('names')
  const out = app.sink<number>('out')
  app
    .source('values', schema)
    .keyBy('by-key', ({ entry }) => entry)
    .process('counting', {
      state: { constructor: valueState<number>(), toString: valueState<number>() },
      step(_, { state }) {
        const count = (state.constructor.get() ?? 0) + 1
        state.constructor.set(count)
        state.toString.set(count)
        return [count]
      },
    })
    .to(out)
  const stage = new StageOnTable(app, 'DynamoDB')
  const twice = [
    { which: 0, entry: 'toString' },
    { which: 0, entry: 'toString' },
  ]
  await stage.send(kinesisEvent(twice))
  await stage.send(kinesisEvent(twice, { firstIndex: 2 }))
  expect(stage.ports.received(out)).toEqual([1, 2, 3, 4])
})
