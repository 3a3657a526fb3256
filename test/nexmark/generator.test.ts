/** The generator keeps every property that docs/nexmark.md states, on counts and samples. */
import { deliveryOrder, eventLines } from '../../bin/nexmark/delivery.ts'
import { defaultBaseTimeMs, EventMaker, type GeneratorOptions, urlOf } from '../../bin/nexmark/event-at.ts'
import type { Auction, Bid, NexmarkEvent, Person } from '../../functions/nexmark/events.ts'

// Tens of thousands of expectations take their time on a busy machine.
jest.setTimeout(120_000)

const seed = 20_240_228

function eventsOf(count: number, options: Partial<GeneratorOptions> = {}, first = 0): readonly NexmarkEvent[] {
  const maker = new EventMaker({ seed, ...options })
  return Array.from({ length: count }, (_, i) => maker.eventAt(first + i))
}

const ofType = <T extends NexmarkEvent>(events: readonly NexmarkEvent[], type: T['type']): readonly T[] =>
  events.filter((event): event is T => event.type === type)
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
const share = <T>(values: readonly T[], holds: (value: T) => boolean): number =>
  values.filter(holds).length / values.length

const events = eventsOf(50_000)
const persons = ofType<Person>(events, 'person')
const auctions = ofType<Auction>(events, 'auction')
const bids = ofType<Bid>(events, 'bid')

/** The newest person and auction numbers as of event `i`. */
const lastPersonAt = (i: number): number => Math.floor(i / 50)
const lastAuctionAt = (i: number): number => 3 * Math.floor(i / 50) + Math.min((i % 50) - 1, 2)

describe('time', () => {
  it('is one event a ms from 4.75 s before a midnight on, unless said otherwise', () => {
    expect(new Date(defaultBaseTimeMs).toISOString()).toBe('2024-02-28T23:59:55.250Z')
    expect(events.map(({ eventTime }) => eventTime)).toEqual(events.map((_, i) => defaultBaseTimeMs + i))
  })

  it.each([
    [10_000, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]],
    [1, [0, 1_000, 2_000]],
    [3, [0, 333, 666, 1_000, 1_333]],
    [1_000_000, [0, 0, 0]],
  ])('is strictly even at %d events a second', (rate, offsets) => {
    const maker = new EventMaker({ seed, rate, baseTimeMs: 7_000 })
    expect(offsets.map((_, i) => maker.eventTimeMs(i) - 7_000)).toEqual(offsets)
  })
})

describe('mix and ids', () => {
  it('has a person, three auctions and 46 bids in each cycle of 50', () => {
    const types = events.map(({ type }) => type)
    const cycle = ['person', 'auction', 'auction', 'auction', ...Array.from({ length: 46 }, () => 'bid')]
    expect(types).toEqual(events.map((_, i) => cycle[i % 50]))
  })

  it('numbers persons and auctions from 1000 on without a gap', () => {
    expect(persons.map(({ id }) => id)).toEqual(persons.map((_, i) => 1_000 + i))
    expect(auctions.map(({ id }) => id)).toEqual(auctions.map((_, i) => 1_000 + i))
  })

  it('writes the fields of each type in the order of the schema', () => {
    expect(Object.keys(persons[0] as Person).join()).toBe(
      'type,eventTime,id,name,emailAddress,creditCard,city,state,extra',
    )
    expect(Object.keys(auctions[0] as Auction).join()).toBe(
      'type,eventTime,id,itemName,description,initialBid,reserve,expires,seller,category,extra',
    )
    expect(Object.keys(bids[0] as Bid).join()).toBe('type,eventTime,auction,bidder,price,channel,url,extra')
  })

  it('is ASCII and whole numbers below 2^53', () => {
    for (const event of events.slice(0, 5_000)) {
      for (const value of Object.values(event)) {
        if (typeof value === 'string') expect(value).toMatch(/^[\x20-\x7e]*$/)
        else expect(Number.isSafeInteger(value)).toBe(true)
      }
    }
  })
})

describe('references', () => {
  const numbered = events.map((event, i) => ({ event, i }))
  const sold = numbered.flatMap(({ event, i }) =>
    event.type === 'auction' ? [{ at: i, to: event.seller - 1_000 }] : [],
  )
  const bidders = numbered.flatMap(({ event, i }) =>
    event.type === 'bid' ? [{ at: i, to: event.bidder - 1_000 }] : [],
  )
  const bidOn = numbered.flatMap(({ event, i }) => (event.type === 'bid' ? [{ at: i, to: event.auction - 1_000 }] : []))
  const hotSeller = (at: number): number => Math.floor(lastPersonAt(at) / 100) * 100
  const hotAuction = (at: number): number => Math.floor(lastAuctionAt(at) / 100) * 100

  it('go to a hot seller and a hot bidder three times in four, to a hot auction every second time', () => {
    expect(share(sold, ({ at, to }) => to === hotSeller(at))).toBeCloseTo(0.75, 1)
    expect(share(bidders, ({ at, to }) => to === hotSeller(at) + 1)).toBeCloseTo(0.75, 1)
    expect(share(bidOn, ({ at, to }) => to === hotAuction(at))).toBeCloseTo(0.5, 1)
  })

  it('go else to any of the last thousand persons, or up to ten ahead of them', () => {
    const others = bidders.filter(({ at, to }) => to !== hotSeller(at) + 1).map(({ at, to }) => to - lastPersonAt(at))
    expect(Math.max(...others)).toBe(10)
    expect(Math.min(...others)).toBeLessThan(-900)
    for (const { at, to } of [...bidders, ...sold]) {
      expect(to).toBeGreaterThanOrEqual(Math.min(Math.max(lastPersonAt(at) - 999, 0), hotSeller(at)))
      expect(to).toBeLessThanOrEqual(lastPersonAt(at) + 10)
    }
  })

  it('go else to any of the last hundred auctions, or up to ten ahead of them', () => {
    const others = bidOn.filter(({ at, to }) => to !== hotAuction(at)).map(({ at, to }) => to - lastAuctionAt(at))
    expect(Math.max(...others)).toBe(10)
    expect(Math.min(...others)).toBe(-100)
    for (const { at, to } of bidOn) expect(to).toBeGreaterThanOrEqual(Math.max(lastAuctionAt(at) - 100, 0))
    // Ten of the 110 that are not hot; while there are few auctions yet, ten of fewer.
    expect(share(others, (ahead) => ahead > 0)).toBeCloseTo(0.095, 1.9)
  })

  it('are never hot where the ratio is 1', () => {
    const cold = eventsOf(20_000, { hotSellers: 1, hotBidders: 1, hotAuctions: 1 }, 500_000)
    const onHot = ofType<Bid>(cold, 'bid').filter(({ auction }) => auction - 1_000 === hotAuction(500_000))
    expect(onHot.length).toBeLessThan(500)
    expect(share(ofType<Bid>(cold, 'bid'), ({ bidder }) => bidder % 100 === 1)).toBeLessThan(0.03)
    expect(share(ofType<Auction>(cold, 'auction'), ({ seller }) => seller % 100 === 0)).toBeLessThan(0.03)
  })
})

describe('values', () => {
  it('has prices from 100 to 100,000,000, a sixth of them in each power of ten', () => {
    const prices = bids.map(({ price }) => price)
    expect(Math.min(...prices)).toBeGreaterThanOrEqual(100)
    expect(Math.max(...prices)).toBeLessThanOrEqual(100_000_000)
    for (let power = 2; power < 8; power++) {
      expect(share(prices, (price) => price >= 10 ** power && price < 10 ** (power + 1))).toBeCloseTo(1 / 6, 1.5)
    }
  })

  it('has a reserve that is another price above the first bid', () => {
    for (const { initialBid, reserve } of auctions) {
      expect(reserve - initialBid).toBeGreaterThanOrEqual(100)
      expect(reserve - initialBid).toBeLessThanOrEqual(100_000_000)
    }
  })

  it('has five categories from 10 on, alike', () => {
    for (let category = 10; category < 15; category++) {
      expect(share(auctions, (auction) => auction.category === category)).toBeCloseTo(0.2, 1)
    }
    expect(new Set(auctions.map(({ category }) => category)).size).toBe(5)
  })

  it.each([
    [1_000, 1_666],
    [10_000, 166],
    [1, 1_666_000],
  ])('closes auctions within twice the time of a hundred further ones, at %d events a second', (rate, horizonMs) => {
    const open = ofType<Auction>(eventsOf(20_000, { rate }), 'auction').map(
      ({ eventTime, expires }) => expires - eventTime,
    )
    expect(Math.min(...open)).toBeGreaterThanOrEqual(1)
    // The distance of two cut times may be one ms more than the cut distance.
    expect(Math.max(...open)).toBeLessThanOrEqual(2 * (horizonMs + 1))
    expect(mean(open) / horizonMs).toBeCloseTo(1, 0.7)
  })

  it('makes names of 11 first and 9 last ones, and takes cities and states of a list', () => {
    const names = persons.map(({ name }) => name.split(' '))
    expect(new Set(names.map(([first]) => first)).size).toBe(11)
    expect(new Set(names.map(([, last]) => last)).size).toBe(9)
    expect(new Set(persons.map(({ city }) => city)).size).toBe(10)
    expect([...new Set(persons.map(({ state }) => state))].toSorted()).toEqual(['AZ', 'CA', 'ID', 'OR', 'WA', 'WY'])
    for (const { creditCard } of persons) expect(creditCard).toMatch(/^\d{4} \d{4} \d{4} \d{4}$/)
    for (const { emailAddress } of persons) expect(emailAddress).toMatch(/^[a-z ]{0,6}@[a-z ]{0,4}\.com$/)
  })

  it('makes words of 3 letters to one below their limit, with a filler once in 13 characters', () => {
    for (const { itemName, description } of auctions) {
      expect(itemName).toMatch(/^([a-z]([a-z ]*[a-z])?)?$/)
      expect(itemName.length).toBeLessThanOrEqual(19)
      expect(description.length).toBeLessThanOrEqual(99)
    }
    expect(Math.max(...auctions.map(({ itemName }) => itemName.length))).toBe(19)
    const text = auctions.map(({ description }) => description.slice(1, -1)).join('')
    expect(share([...text], (letter) => letter === ' ')).toBeCloseTo(1 / 13, 2)
    expect(new Set(text).size).toBe(27)
  })

  it('has one of four large channels half the time, and ten thousand others alike', () => {
    const large = ['Google', 'Facebook', 'Baidu', 'Apple']
    for (const name of large) expect(share(bids, ({ channel }) => channel === name)).toBeCloseTo(1 / 8, 1.5)
    const numbers = bids.flatMap(({ channel }) => (large.includes(channel) ? [] : [Number(channel.slice(8))]))
    expect(numbers.every((number) => Number.isInteger(number) && number >= 0 && number < 10_000)).toBe(true)
    expect(mean(numbers) / 5_000).toBeCloseTo(1, 1)
  })

  it('has one url for each channel, which tells the bits of its number in reverse nine times in ten', () => {
    const urls = new Map<string, string>()
    for (const { channel, url } of bids) {
      expect(urls.get(channel) ?? url).toBe(url)
      urls.set(channel, url)
      expect(url).toMatch(/^https:\/\/[a-z.]+(\/[a-z_]{3,4}){3}\/item\.htm\?query=1(&channel_id=\d+)?$/)
    }
    expect(urls.get('Apple')).not.toContain('channel_id')
    const numbered = [...urls].filter(([channel]) => channel.startsWith('channel-'))
    expect(share(numbered, ([, url]) => url.includes('&channel_id='))).toBeCloseTo(0.9, 1.5)
    for (const [channel, url] of numbered) {
      const bits = Number(channel.slice(8)).toString(2).padStart(32, '0')
      const id = Math.abs(Number.parseInt([...bits].reverse().join(''), 2) | 0)
      if (url.includes('&channel_id=')) expect(url.split('&channel_id=')[1]).toBe(String(id))
    }
    expect(urlOf('channel-1')).toMatch(/&channel_id=2147483648$|query=1$/)
  })

  it('fills bids with 54 to 81 letters, and all events to their nominal size on average', () => {
    const lengths = bids.map(({ extra }) => extra.length)
    expect([Math.min(...lengths), Math.max(...lengths)]).toEqual([54, 81])
    expect(mean(lengths) + 32).toBeCloseTo(100, -0.5)
    const personBytes = persons.map(
      ({ name, emailAddress, creditCard, city, state, extra }) =>
        8 + name.length + emailAddress.length + creditCard.length + city.length + state.length + extra.length,
    )
    expect(mean(personBytes) / 200).toBeCloseTo(1, 1.5)
    const auctionBytes = auctions.map(
      ({ itemName, description, extra }) => 48 + itemName.length + description.length + extra.length,
    )
    expect(mean(auctionBytes) / 500).toBeCloseTo(1, 1.5)
    expect(mean(bids.map(({ extra }) => extra.split('c').length - 1))).toBeCloseTo(2.6, 0.9)
  })
})

describe('determinism', () => {
  it('makes an event from its number alone', () => {
    const maker = new EventMaker({ seed })
    for (const i of [49_999, 3, 777, 0, 31_415]) expect(maker.eventAt(i)).toEqual(events[i])
    expect(new EventMaker({ seed }).eventAt(9e12)).toEqual(new EventMaker({ seed }).eventAt(9e12))
  })

  it('makes other events of another seed, also where only its high digits differ', () => {
    const contentOf = (other: number) => JSON.stringify(eventsOf(50, { seed: other }))
    const contents = [0, 1, 2, 2 ** 32, 2 ** 32 + 1, 2 ** 53 - 1].map(contentOf)
    expect(new Set(contents).size).toBe(contents.length)
  })

  it('makes no two bids alike in their draws', () => {
    expect(new Set(bids.map(({ extra }) => extra)).size).toBe(bids.length)
  })
})

describe('order of delivery', () => {
  it('is that of the numbers without disorder', () => {
    expect([...deliveryOrder({ seed, events: 1_000 })]).toEqual(Array.from({ length: 1_000 }, (_, i) => i))
  })

  it.each([1, 2, 40, 4_000, 100_000])(
    'delivers every event once and less than %d ms behind the newest',
    (disorderMs) => {
      const order = [...deliveryOrder({ seed, events: 20_000, disorderMs })]
      expect(order.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20_000 }, (_, i) => i))
      let newest = Number.NEGATIVE_INFINITY
      let most = 0
      for (const number of order) {
        newest = Math.max(newest, number)
        most = Math.max(most, newest - number)
      }
      expect(most).toBeLessThan(disorderMs)
      if (disorderMs >= 40) expect(most).toBeGreaterThan(Math.min(disorderMs, 20_000) / 2)
    },
  )

  it('holds events of one time back too, at ten events a ms', () => {
    const order = [...deliveryOrder({ seed, events: 5_000, disorderMs: 50, rate: 10_000 })]
    expect(order.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 5_000 }, (_, i) => i))
    expect(order).not.toEqual(order.toSorted((a, b) => a - b))
  })

  it('does not change the events', () => {
    const plain = [...eventLines({ seed, events: 3_000 })]
    const disordered = [...eventLines({ seed, events: 3_000, disorderMs: 4_000 })]
    expect(disordered).not.toEqual(plain)
    expect(disordered.toSorted()).toEqual(plain.toSorted())
    expect(plain.map((line) => JSON.parse(line))).toEqual(events.slice(0, 3_000))
  })
})
