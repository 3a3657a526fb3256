/**
 * The events of the benchmark by their number. Event `i` follows from the seed, the options and `i` alone.
 *
 * Events come in cycles of 50: a person, three auctions, 46 bids. References point at what is there already, or at most
 * ten ids ahead of it, so a bid may come before its auction, and a few name something that never comes.
 */
import type { Auction, Bid, NexmarkEvent, Person } from '../../functions/nexmark/events.ts'
import { Random } from './random.ts'
import { extra, word } from './words.ts'

export interface GeneratorOptions {
  readonly seed: number
  /** Events a second of event time, evenly spaced. @default 1000 */
  readonly rate?: number
  /** Event time of event 0, in ms since 1970 UTC. @default 2024-02-28T23:59:55.250Z */
  readonly baseTimeMs?: number
  /** One in so many sellers, bidders and auctions is not the hot one; 1 makes none hot. @default 4, 4 and 2 */
  readonly hotSellers?: number
  readonly hotBidders?: number
  readonly hotAuctions?: number
}

export const defaultRate = 1_000
/** Off every window's edge, and 4.75 s before the midnight that begins a leap day. */
export const defaultBaseTimeMs = Date.UTC(2024, 1, 28, 23, 59, 55, 250)

const cycle = 50
const auctionsPerCycle = 3
const firstId = 1_000
/** How far references point ahead of what exists. */
const idsAhead = 10
const activePeople = 1_000
const activeAuctions = 100
const hotGroup = 100
const categories = { first: 10, count: 5 }
const channelCount = 10_000
const nominalBytes = { person: 200, auction: 500, bid: 100 }

const firstNames = 'Ada Bruno Clara Dev Esra Finn Greta Hugo Ines Juno Karl'.split(' ')
const lastNames = 'Abbott Baker Castle Dorn Ember Fox Grove Hale Irons'.split(' ')
const cities =
  'Ashford,Boulder Creek,Cedar Falls,Dunmore,Eastport,Fairview,Glenwood,Harbor Springs,Iron Hill,Juniper'.split(',')
const states = ['AZ', 'CA', 'ID', 'OR', 'WA', 'WY']
const hotChannels = ['Google', 'Facebook', 'Baidu', 'Apple']

const pick = (random: Random, names: readonly string[]): string => names[random.below(names.length)] as string

/** Makes events one by one. */
export class EventMaker {
  readonly #options: Required<GeneratorOptions>
  readonly #random = new Random()
  readonly #urls = new Map<string, string>()

  constructor({ seed, rate = defaultRate, baseTimeMs = defaultBaseTimeMs, ...hot }: GeneratorOptions) {
    const { hotSellers = 4, hotBidders = 4, hotAuctions = 2 } = hot
    this.#options = { seed, rate, baseTimeMs, hotSellers, hotBidders, hotAuctions }
  }

  /** Event times are strictly even: their distance is that of the rate, in microseconds, cut to ms. */
  eventTimeMs(number: number): number {
    const { rate, baseTimeMs } = this.#options
    return baseTimeMs + Math.floor(Math.floor((number * 1e6) / rate) / 1_000)
  }

  eventAt(number: number): NexmarkEvent {
    const random = this.#random.restart('content', this.#options.seed, number)
    const place = number % cycle
    const lastPerson = Math.floor(number / cycle)
    const lastAuction = auctionsPerCycle * lastPerson + Math.min(place - 1, auctionsPerCycle - 1)
    if (place === 0) return this.#person(number, lastPerson, random)
    if (place <= auctionsPerCycle) return this.#auction(number, lastPerson, lastAuction, random)
    return this.#bid(number, lastPerson, lastAuction, random)
  }

  #person(number: number, lastPerson: number, random: Random): Person {
    const name = `${pick(random, firstNames)} ${pick(random, lastNames)}`
    const emailAddress = `${word(random, 7, ' ')}@${word(random, 5, ' ')}.com`
    const creditCard = Array.from({ length: 4 }, () => String(random.below(10_000)).padStart(4, '0')).join(' ')
    const city = pick(random, cities)
    const state = pick(random, states)
    const used = 8 + name.length + emailAddress.length + creditCard.length + city.length + state.length
    return {
      type: 'person',
      eventTime: this.eventTimeMs(number),
      id: lastPerson + firstId,
      ...{ name, emailAddress, creditCard, city, state },
      extra: extra(random, used, nominalBytes.person),
    }
  }

  #auction(number: number, lastPerson: number, lastAuction: number, random: Random): Auction {
    const eventTime = this.eventTimeMs(number)
    const itemName = word(random, 20, ' ')
    const description = word(random, 100, ' ')
    const initialBid = price(random)
    const reserve = initialBid + price(random)
    const isHot = random.isHot(this.#options.hotSellers)
    const seller = isHot ? Math.floor(lastPerson / hotGroup) * hotGroup : anyPerson(random, lastPerson)
    const used = 48 + itemName.length + description.length
    return {
      ...{ type: 'auction', eventTime, id: lastAuction + firstId, itemName, description, initialBid, reserve },
      expires: eventTime + 1 + random.below(Math.max(2 * this.#horizonMs(number), 1)),
      seller: seller + firstId,
      category: categories.first + random.below(categories.count),
      extra: extra(random, used, nominalBytes.auction),
    }
  }

  /** How long it takes until as many further auctions have opened as are active at a time. */
  #horizonMs(number: number): number {
    const events = Math.floor((activeAuctions * cycle) / auctionsPerCycle)
    return this.eventTimeMs(number + events) - this.eventTimeMs(number)
  }

  #bid(number: number, lastPerson: number, lastAuction: number, random: Random): Bid {
    const auction = random.isHot(this.#options.hotAuctions)
      ? Math.floor(lastAuction / hotGroup) * hotGroup
      : anyAuction(random, lastAuction)
    const bidder = random.isHot(this.#options.hotBidders)
      ? Math.floor(lastPerson / hotGroup) * hotGroup + 1
      : anyPerson(random, lastPerson)
    const amount = price(random)
    const channel = random.isHot(2) ? pick(random, hotChannels) : `channel-${random.below(channelCount)}`
    return {
      type: 'bid',
      eventTime: this.eventTimeMs(number),
      auction: auction + firstId,
      bidder: bidder + firstId,
      price: amount,
      channel,
      url: this.#urlOf(channel),
      // Channel and url count as nothing here.
      extra: extra(random, 32, nominalBytes.bid),
    }
  }

  #urlOf(channel: string): string {
    const url = this.#urls.get(channel) ?? urlOf(channel)
    this.#urls.set(channel, url)
    return url
  }
}

/** From 100 to 100,000,000, each size of number as frequent as any other. */
const price = (random: Random): number => Math.round(100 * 10 ** (random.fraction() * 6))

function anyPerson(random: Random, lastPerson: number): number {
  const people = lastPerson + 1
  const active = Math.min(people, activePeople)
  return people - active + random.below(active + idsAhead)
}

function anyAuction(random: Random, lastAuction: number): number {
  const first = Math.max(lastAuction - activeAuctions, 0)
  return first + random.below(lastAuction - first + 1 + idsAhead)
}

/** The url of a channel is the same in every run. Nine in ten of the numbered channels tell an id in theirs. */
export function urlOf(channel: string): string {
  const hot = hotChannels.indexOf(channel)
  const number = hot === -1 ? Number(channel.slice('channel-'.length)) : channelCount + hot
  const random = new Random().restart('url', 0, number)
  const directories = Array.from({ length: 3 }, () => word(random, 5, '_')).join('/')
  const url = `https://www.auctions.example/${directories}/item.htm?query=1`
  return hot === -1 && random.below(10) > 0 ? `${url}&channel_id=${channelId(number)}` : url
}

/** The bits of the number in reverse order, read as a signed number of 32 bits, without its sign. */
function channelId(number: number): number {
  let reversed = 0
  for (let bit = 0; bit < 32; bit++) reversed = (reversed << 1) | ((number >>> bit) & 1)
  return Math.abs(reversed)
}
