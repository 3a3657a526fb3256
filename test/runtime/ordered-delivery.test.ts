import { type Answer, backoffMs, type Destination, deliverInOrder } from '../../lib/runtime/ordered-delivery.ts'
import { delivered } from '../../lib/runtime/sink.ts'
import { never, testPorts } from '../aws/sink-worlds.ts'

/** A destination of one item per request; items are a key and a number, such as `a1`. */
function destination(send: (item: string) => Answer): Destination<string> & { readonly sent: string[] } {
  const sent: string[] = []
  return {
    sent,
    label: 'nowhere',
    maxItemsPerRequest: 1,
    maxBytesPerRequest: 1,
    maxRequests: 2,
    sizeOf: () => 1,
    orderKeyOf: (item) => item.slice(0, 1),
    async send(items) {
      sent.push(...items)
      return items.map(send)
    },
  }
}

const busy = new Error('busy')
const passesByItself = (thrown: unknown) => thrown === busy

const run = (items: readonly string[], to: Destination<string>) =>
  deliverInOrder(items, to, { ...testPorts(), random: () => 0.5, passesByItself }, never())

describe('deliverInOrder', () => {
  test('an item that is answered by a retry keeps back the later ones of its key, and no others', async () => {
    const to = destination((item) => (item === 'a2' ? { status: 'retry', error: new Error('later') } : delivered))
    const outcomes = await run(['a1', 'b1', 'a2', 'a3', 'b2'], to)
    expect(outcomes.map(({ status }) => status)).toEqual(['delivered', 'delivered', 'retry', 'retry', 'delivered'])
    expect(to.sent).not.toContain('a3')
  })

  test('behind an item that is rejected its key goes on', async () => {
    const to = destination((item) => (item === 'a1' ? { status: 'rejected', error: new Error('never') } : delivered))
    expect((await run(['a1', 'a2'], to)).map(({ status }) => status)).toEqual(['rejected', 'delivered'])
  })

  test('what needs a person stops every key, and requests in flight are awaited', async () => {
    const to = destination((item) => {
      if (item === 'a1') throw new Error('access denied')
      return delivered
    })
    const outcomes = await run(['a1', 'b1', 'b2', 'c1'], to)
    expect(outcomes.map(({ status }) => status)).toEqual(['retry', 'delivered', 'retry', 'retry'])
    expect(to.sent).toEqual(['a1', 'b1'])
  })

  test('what passes by itself is sent again', async () => {
    let requests = 0
    const to = destination(() => {
      if (++requests < 4) throw busy
      return delivered
    })
    expect(await run(['a1'], to)).toEqual([delivered])
    expect(to.sent).toEqual(['a1', 'a1', 'a1', 'a1'])
  })

  test('whatever is thrown is no reason to reject', async () => {
    const to = destination(() => {
      throw undefined
    })
    expect(await run(['a1'], to)).toMatchObject([{ status: 'retry', error: { code: 'sink-misconfigured' } }])
  })
})

describe('backoffMs', () => {
  test('doubles up to a limit, and is a random part of that', () => {
    const almostOne = () => 0.999999
    expect([1, 2, 3, 7, 8, 99].map((attempt) => Math.round(backoffMs(attempt, almostOne)))).toEqual([
      50, 100, 200, 3_200, 3_200, 3_200,
    ])
    expect(backoffMs(5, () => 0)).toBe(0)
  })
})
