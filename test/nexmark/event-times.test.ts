/** How much events are out of order, and how lines are sorted where that is too much. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { disorderOf, eventTimesOf } from '../../bin/nexmark/event-times.ts'
import { sortedLines } from '../../bin/nexmark/sorted-lines.ts'
import { q0 } from '../../functions/nexmark/q0/topology.ts'
import { milliseconds } from '../../lib/index.ts'

const timeOf = eventTimesOf(q0(milliseconds(0)))

const bid = (eventTime: unknown, fields: object = {}): Buffer => {
  const rest = { auction: 1, bidder: 1, price: 100, channel: 'channel-7', url: 'https://host/a/b/c', extra: 'x' }
  return Buffer.from(JSON.stringify({ type: 'bid', eventTime, ...rest, ...fields }))
}

/** Pieces of any lengths, as a file is read. */
const pieces = fc.array(fc.array(fc.integer({ min: -50, max: 50 }), { maxLength: 8 }), { maxLength: 8 })

describe('disorder', () => {
  it('is the most that an event trails any one before it', () => {
    fc.assert(
      fc.property(pieces, (times) => {
        const all = times.flat()
        const trailing = all.flatMap((timeMs, i) => all.slice(0, i).map((before) => before - timeMs))
        const found = disorderOf(
          timeOf,
          times.map((piece) => piece.map((timeMs) => bid(timeMs))),
        )
        expect(found.ms).toBe(Math.max(0, ...trailing))
      }),
    )
  })

  it('is none of no event, of one, and of events in order', () => {
    expect(disorderOf(timeOf, []).ms).toBe(0)
    expect(disorderOf(timeOf, [[bid(7)]]).ms).toBe(0)
    expect(disorderOf(timeOf, [[bid(7), bid(7)], [], [bid(9)]]).ms).toBe(0)
  })

  it('counts persons and auctions too, since they move time as bids do', () => {
    const person = { type: 'person', eventTime: 5_000, id: 1, name: 'n', emailAddress: 'e', creditCard: '1' }
    const line = Buffer.from(JSON.stringify({ ...person, city: 'c', state: 'OR', extra: '' }))
    expect(disorderOf(timeOf, [[line, bid(1_000)]]).ms).toBe(4_000)
  })

  it.each([
    ['a line that is not JSON', Buffer.from('{')],
    ['a line that is not UTF-8', Buffer.from([0x7b, 0xff])],
    ['a bid without a price', bid(9_000, { price: undefined })],
    ['a time that is text', bid('9000')],
    ['a time that nobody can mean', bid(Number.MAX_SAFE_INTEGER)],
  ])('leaves out %s, which moves no time', (_, line) => {
    expect(timeOf(line)).toBeUndefined()
    expect(disorderOf(timeOf, [[bid(5), line, bid(2)]]).ms).toBe(3)
  })
})

describe('sorting', () => {
  it('gives every line in the order of the times, those of one time as they came, those without one first', () => {
    const runs = fc.record({
      lines: fc.array(fc.array(fc.option(fc.integer({ min: 0, max: 20 })), { maxLength: 6 }), { maxLength: 12 }),
      partBytes: fc.constantFrom(1, 500, 1 << 20),
    })
    fc.assert(
      fc.property(runs, ({ lines, partBytes }) => {
        const directory = mkdtempSync(join(tmpdir(), 'millrace-nexmark-'))
        try {
          let count = 0
          const numbered = lines.map((piece) => piece.map((time) => bid(time, { bidder: count++ })))
          const inOrder = numbered
            .flat()
            .toSorted((a, b) => (timeOf(a) ?? Number.MIN_SAFE_INTEGER) - (timeOf(b) ?? Number.MIN_SAFE_INTEGER))
          const sorted = [...sortedLines(numbered, { directory, timeOf, partBytes })].flat()
          expect(sorted.map(String)).toEqual(inOrder.map(String))
        } finally {
          rmSync(directory, { recursive: true })
        }
      }),
      { numRuns: 50 },
    )
  })
})
