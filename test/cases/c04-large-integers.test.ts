import { z } from 'zod'
import { json } from '../../lib/core/format.ts'
import { TestDriver } from '../../lib/testing/test-driver.ts'
import { Topology } from '../../lib/topology/topology.ts'

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
