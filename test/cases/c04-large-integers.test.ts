import { z } from 'zod'
import { json } from '../../lib/core/format.ts'
import { valueState } from '../../lib/state/states.ts'
import { kinesisEvent } from '../../lib/testing/events.ts'
import { TestDriver } from '../../lib/testing/test-driver.ts'
import { Topology } from '../../lib/topology/topology.ts'
import { StageOnTable, stores } from './stage-on-table.ts'

const payloads = [
  '{"id":1524831183200260096,"v":1}',
  '{"id":1524831183200260097,"v":1}',
  '{"id":7,"v":1}',
  '{"id":1524831183200260097.0,"v":1}',
  '{"id":1e999,"v":1}',
]

async function countsById(largeIntegers: 'refuse' | 'bigint') {
  const app = new Topology('ids')
  const schema = z.object({ id: z.union([z.number(), z.bigint()]), v: z.number() })
  const source = app.source('in', schema, { format: json({ largeIntegers }) })
  const out = app.sink<string>('out')
  source.map(({ id }) => String(id)).to(out)
  const driver = new TestDriver(app)
  await driver.sendRaw(source, payloads)
  return {
    ids: driver.received(out),
    codes: driver.deadLetters.map(({ position, reason }) => `${position} ${reason.code}`),
  }
}

test('ids above 2^53 are refused unless the source asks for BigInt; their neighbours go on', async () => {
  expect(await countsById('refuse')).toEqual({
    ids: ['7'],
    codes: ['0 unsafe-integer', '1 unsafe-integer', '3 unsafe-integer', '4 unsafe-integer'],
  })
})

test('as BigInt they are two keys', async () => {
  expect(await countsById('bigint')).toEqual({
    ids: ['1524831183200260096', '1524831183200260097', '7'],
    codes: ['3 unsafe-integer', '4 unsafe-integer'],
  })
})

describe.each(stores)('keyed by the id on the %s store', (store) => {
  const schema = z.object({ id: z.union([z.number(), z.bigint()]), v: z.number() })

  /** What is counted by id, and the codes of what is not. */
  async function countedBy(
    largeIntegers: 'refuse' | 'bigint',
    idOf: (id: number | bigint) => number | bigint | string,
  ) {
    const app = new Topology('ids')
    const out = app.sink<string>('out')
    app
      .source('in', schema, { format: json({ largeIntegers }) })
      .map(({ id }) => ({ id: idOf(id) }))
      .keyBy('by-key', ({ id }) => String(id))
      .process('counting', {
        state: { count: valueState<number>() },
        step({ id }, { key, state }) {
          const count = (state.count.get() ?? 0) + 1
          state.count.set(count)
          return [`${key} ${id} ${count}`]
        },
      })
      .to(out)
    const stage = new StageOnTable(app, store)
    await stage.send(kinesisEvent([...payloads, payloads[0]]))
    return {
      counted: stage.ports.received(out).toSorted(),
      codes: stage.ports.deadLettered.map(({ reason }) => reason.code),
    }
  }

  test('as BigInt that a step makes text of they are two keys', async () => {
    expect(await countedBy('bigint', String)).toEqual({
      counted: [
        '1524831183200260096 1524831183200260096 1',
        '1524831183200260096 1524831183200260096 2',
        '1524831183200260097 1524831183200260097 1',
        '7 7 1',
      ],
      codes: ['unsafe-integer', 'unsafe-integer'],
    })
  })

  test('refused ids make no key', async () => {
    const codes = Array(5).fill('unsafe-integer')
    expect(await countedBy('refuse', (id) => id)).toEqual({ counted: ['7 7 1'], codes })
  })

  test('as BigInt that goes through the keyBy as it is they are two keys', async () => {
    const bigint = (id: number | bigint) => (typeof id === 'bigint' ? id + 0n : id)
    expect(await countedBy('bigint', bigint)).toEqual({
      counted: [
        '1524831183200260096 1524831183200260096 1',
        '1524831183200260096 1524831183200260096 2',
        '1524831183200260097 1524831183200260097 1',
        '7 7 1',
      ],
      codes: ['unsafe-integer', 'unsafe-integer'],
    })
  })
})
