/** What the queries make of events at the edges: bounds, ties, gaps, and lines that are none. */
import fc from 'fast-check'
import type { Bid } from '../../functions/nexmark/events.ts'
import { seconds } from '../../lib/index.ts'
import { resultsOf, runLines } from './run-lines.ts'

const baseMs = Date.UTC(2024, 2, 1)

const bidAt = (eventTime: number, fields: Partial<Bid> = {}): Bid => ({
  type: 'bid',
  eventTime,
  ...{
    auction: 1,
    bidder: 1,
    price: 100,
    channel: 'channel-7',
    url: 'https://host/a/b/c/item.htm?query=1',
    extra: 'x',
  },
  ...fields,
})

describe('q1', () => {
  it.each([
    [1, '0.908'],
    [0, '0.000'],
    [1_000, '908.000'],
    [100_000_000, '90800000.000'],
    [-3, '-2.724'],
    // Beyond what a number of thousandths could tell.
    [9_007_199_254_740_991, '8178536923304819.828'],
  ])('converts %d exactly', async (price, expected) => {
    expect(await resultsOf('q1', [bidAt(baseMs, { price })])).toEqual([expect.objectContaining({ price: expected })])
  })
})

describe('q14', () => {
  it.each([
    // 1,000,000 / 0.908 = 1,101,321.58..., 50,000,000 / 0.908 = 55,066,079.29...
    [1_101_321, false],
    [1_101_322, true],
    [55_066_079, true],
    [55_066_080, false],
  ])('with a price of %d is in: %s', async (price, isIn) => {
    expect(await resultsOf('q14', [bidAt(baseMs, { price })])).toHaveLength(isIn ? 1 : 0)
  })

  it('tells the part of the day by the hour of UTC', async () => {
    const hours = Array.from({ length: 24 }, (_, hour) =>
      bidAt(baseMs + hour * 3_600_000, { auction: hour, price: 5e6 }),
    )
    const rows = (await resultsOf('q14', hours)) as { auction: number; bidTimeType: string }[]
    const hoursOf = (type: string) =>
      rows.flatMap((row) => (row.bidTimeType === type ? [row.auction] : [])).toSorted((a, b) => a - b)
    expect(hoursOf('dayTime')).toEqual([8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18])
    expect(hoursOf('nightTime')).toEqual([0, 1, 2, 3, 4, 5, 6, 20, 21, 22, 23])
    expect(hoursOf('otherTime')).toEqual([7, 19])
  })

  it('counts every small c', async () => {
    const counts = ['', 'c', 'cCc', 'abccba'].map((extra) => bidAt(baseMs, { price: 5e6, extra }))
    const rows = (await resultsOf('q14', counts)) as { c_counts: number }[]
    expect(rows.map(({ c_counts }) => c_counts).toSorted()).toEqual([0, 1, 2, 2])
  })
})

describe('q21', () => {
  it.each([
    ['apple', 'u', '0'],
    ['GOOGLE', 'u', '1'],
    ['Facebook', 'u&channel_id=9', '2'],
    ['baidu', 'u', '3'],
    ['channel-5', 'https://host/a?query=1&channel_id=77', '77'],
    ['channel-5', 'https://host/a?query=1&channel_id=77&more=1', '77'],
    ['channel-5', 'https://host/a?query=1&channel_id=', ''],
    ['channel-5', 'https://host/a?channel_id=77', undefined],
    ['channel-5', 'https://host/a', undefined],
  ])('finds the id of %s at %s: %s', async (channel, url, id) => {
    const rows = (await resultsOf('q21', [bidAt(baseMs, { channel, url })])) as { channel_id: string }[]
    expect(rows.map(({ channel_id }) => channel_id)).toEqual(id === undefined ? [] : [id])
  })
})

describe('q22', () => {
  it.each([
    ['https://host/a/b/c/item.htm', ['a', 'b', 'c']],
    ['https://host/a/b', ['a', 'b', null]],
    ['https://host', [null, null, null]],
    ['https://host//b/', ['', 'b', '']],
  ])('parts %s', async (url, [dir1, dir2, dir3]) => {
    expect(await resultsOf('q22', [bidAt(baseMs, { url })])).toEqual([expect.objectContaining({ dir1, dir2, dir3 })])
  })
})

describe('q5', () => {
  it('counts windows that begin before the first bid, and names all auctions of a tie', async () => {
    const bids = [bidAt(baseMs + 1, { auction: 3 }), bidAt(baseMs + 1_999, { auction: 20 })]
    const windows = [-8_000, -6_000, -4_000, -2_000, 0].map((offset) => baseMs + offset)
    const expected = windows.flatMap((starttime) =>
      [20, 3].map((auction) => ({ auction, num: 1, starttime, endtime: starttime + 10_000 })),
    )
    const rows = await resultsOf('q5', bids)
    expect(rows).toHaveLength(10)
    expect(rows).toEqual(expect.arrayContaining(expected))
  })

  it('counts a bid on an edge in the window that begins there, not in the one that ends', async () => {
    const rows = (await resultsOf('q5', [bidAt(baseMs + 10_000)])) as { starttime: number }[]
    expect(rows.map(({ starttime }) => starttime - baseMs).toSorted((a, b) => a - b)).toEqual([
      2_000, 4_000, 6_000, 8_000, 10_000,
    ])
  })
})

describe('q7', () => {
  it('gives all bids of the largest price, equal ones as often as they came', async () => {
    const bids = [
      bidAt(baseMs + 9_999, { price: 900, auction: 1 }),
      bidAt(baseMs, { price: 900, auction: 2 }),
      bidAt(baseMs, { price: 900, auction: 2 }),
      bidAt(baseMs + 10_000, { price: 950, auction: 3 }),
      bidAt(baseMs + 10_000, { price: 100, auction: 4 }),
    ]
    const rows = (await resultsOf('q7', bids)) as { auction: number }[]
    expect(rows.map(({ auction }) => auction)).toEqual([1, 2, 2, 3])
  })
})

describe('q11', () => {
  it('begins a session after a gap of exactly ten seconds, and joins what is less apart', async () => {
    const times = [0, 9_999, 19_998, 29_998, 60_000]
    const bids = times.map((offset) => bidAt(baseMs + offset, { bidder: 5 }))
    const rows = (await resultsOf('q11', bids)) as { bid_count: number; starttime: number; endtime: number }[]
    const shown = rows.map((row) => [row.bid_count, row.starttime - baseMs, row.endtime - baseMs])
    expect(shown.toSorted((a, b) => Number(a[1]) - Number(b[1]))).toEqual([
      [3, 0, 29_998],
      [1, 29_998, 39_998],
      [1, 60_000, 70_000],
    ])
  })

  it('joins two sessions by a bid that comes between them later', async () => {
    const bids = [0, 11_000, 8_000].map((offset) => bidAt(baseMs + offset, { bidder: 5 }))
    expect(await resultsOf('q11', bids, { partitions: 1 })).toEqual([
      { bidder: 5, bid_count: 3, starttime: baseMs, endtime: baseMs + 21_000 },
    ])
  })
})

describe('any query', () => {
  it.each(['q0', 'q5', 'q7', 'q11', 'q12'])('%s has no results without events, and ends', async (query) => {
    expect(await runLines(query, [])).toEqual({ results: [], late: [], deadLetters: [] })
  })

  it('takes persons and auctions for the passing of time only', async () => {
    const person = { type: 'person', eventTime: baseMs, id: 1_000, name: 'n', emailAddress: 'e', creditCard: '1' }
    const lines = [JSON.stringify({ ...person, city: 'c', state: 'OR', extra: '' })]
    expect(await runLines('q12', lines)).toEqual({ results: [], late: [], deadLetters: [] })
  })

  it.each([
    ['text', 'not JSON'],
    ['a bid without a price', JSON.stringify({ ...bidAt(baseMs), price: undefined })],
    ['a price that is not whole', JSON.stringify(bidAt(baseMs, { price: 1.5 }))],
    ['another type', JSON.stringify({ ...bidAt(baseMs), type: 'offer' })],
    ['a time that is text', JSON.stringify({ ...bidAt(baseMs), eventTime: '2024-03-01' })],
    ['a time behind the year 9999', JSON.stringify(bidAt(Number.MAX_SAFE_INTEGER))],
  ])('makes a dead letter of %s and goes on', async (_, line) => {
    const { results, deadLetters } = await runLines('q12', [line, JSON.stringify(bidAt(baseMs))])
    expect(deadLetters).toHaveLength(1)
    expect(results).toHaveLength(1)
  })

  it('tells bids that are later than was allowed, and leaves them out of the results', async () => {
    const bids = [bidAt(baseMs), bidAt(baseMs + 30_000), bidAt(baseMs + 30_001), bidAt(baseMs + 1)]
    const { results, late } = await runLines(
      'q12',
      bids.map((bid) => JSON.stringify(bid)),
      { partitions: 1, outOfOrderness: seconds(4) },
    )
    expect(late).toHaveLength(1)
    expect(results.map((line) => JSON.parse(line).bid_count)).toEqual([1, 2])
  })

  it.each(['q5', 'q7', 'q11', 'q12'])(
    '%s closes all windows, however far apart partitions are in time',
    async (query) => {
      const times = [Date.UTC(9_998, 0, 1), Date.parse('0001-01-01T00:00:00Z'), -1, 0, baseMs]
      for (const partitions of [1, 2, 5]) {
        const bids = times.map((timeMs) => bidAt(timeMs))
        const rows = await resultsOf(query, bids, { partitions })
        // The two bids around 1970 share a session, and four of their six windows of q5.
        expect(rows).toHaveLength({ q5: 4 * 5 + 1, q7: 5, q11: 4, q12: 5 }[query] as number)
      }
    },
  )

  it('gives the same result whatever the times, their order and the partitions are', async () => {
    const time = fc.integer({ min: -40_000, max: 40_000 }).map((offset) => baseMs + offset)
    const runs = fc.record({
      times: fc.array(time, { maxLength: 40 }),
      partitions: fc.integer({ min: 1, max: 5 }),
      addition: fc.integer({ min: 1, max: 12 }),
    })
    await fc.assert(
      fc.asyncProperty(runs, async ({ times, ...options }) => {
        const counts = new Map<number, number>()
        for (const timeMs of times) {
          const start = Math.floor(timeMs / 10_000) * 10_000
          counts.set(start, (counts.get(start) ?? 0) + 1)
        }
        const expected = [...counts].map(([starttime, bid_count]) => {
          return { bidder: 1, bid_count, starttime, endtime: starttime + 10_000 }
        })
        const bids = times.map((timeMs) => bidAt(timeMs))
        const rows = await resultsOf('q12', bids, options)
        expect(rows).toHaveLength(expected.length)
        expect(rows).toEqual(expect.arrayContaining(expected))
      }),
      { numRuns: 60 },
    )
  })
})
