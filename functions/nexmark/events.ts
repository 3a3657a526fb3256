/**
 * The events of the Nexmark auction benchmark: one flat object each, told apart by `type`. Times are ms since 1970 UTC,
 * numbers are whole.
 *
 * The schema is written by hand, because it sees every event of a benchmark: it looks at each field and copies nothing.
 */
import type { StandardSchemaV1 } from '../../lib/index.ts'

export interface Person {
  readonly type: 'person'
  readonly eventTime: number
  readonly id: number
  readonly name: string
  readonly emailAddress: string
  readonly creditCard: string
  readonly city: string
  readonly state: string
  readonly extra: string
}

export interface Auction {
  readonly type: 'auction'
  readonly eventTime: number
  readonly id: number
  readonly itemName: string
  readonly description: string
  readonly initialBid: number
  readonly reserve: number
  readonly expires: number
  readonly seller: number
  readonly category: number
  readonly extra: string
}

export interface Bid {
  readonly type: 'bid'
  readonly eventTime: number
  readonly auction: number
  readonly bidder: number
  readonly price: number
  readonly channel: string
  readonly url: string
  readonly extra: string
}

export type NexmarkEvent = Person | Auction | Bid

/** What is parsed and not looked at yet. */
type Unchecked<Event> = { readonly [Field in keyof Event]?: unknown }

const isText = (value: unknown): boolean => typeof value === 'string'
const isWhole = (value: unknown): boolean => Number.isSafeInteger(value)

const isPerson = (event: Unchecked<Person>): boolean =>
  isWhole(event.id) &&
  isText(event.name) &&
  isText(event.emailAddress) &&
  isText(event.creditCard) &&
  isText(event.city) &&
  isText(event.state)

const isAuction = (event: Unchecked<Auction>): boolean =>
  isWhole(event.id) &&
  isText(event.itemName) &&
  isText(event.description) &&
  isWhole(event.initialBid) &&
  isWhole(event.reserve) &&
  isWhole(event.expires) &&
  isWhole(event.seller) &&
  isWhole(event.category)

const isBid = (event: Unchecked<Bid>): boolean =>
  isWhole(event.auction) && isWhole(event.bidder) && isWhole(event.price) && isText(event.channel) && isText(event.url)

function isEvent(value: unknown): value is NexmarkEvent {
  if (typeof value !== 'object' || value === null) return false
  const event = value as Unchecked<NexmarkEvent>
  if (!isWhole(event.eventTime) || !isText(event.extra)) return false
  if (event.type === 'bid') return isBid(event)
  return event.type === 'auction' ? isAuction(event) : event.type === 'person' && isPerson(event)
}

const refused = {
  issues: [
    { message: 'is no person, auction or bid: a field is missing, or is not the text or whole number it should be' },
  ],
}

/** The schema of the source. */
export const NexmarkEvent: StandardSchemaV1<NexmarkEvent> = {
  '~standard': {
    version: 1,
    vendor: 'nexmark',
    validate: (value) => (isEvent(value) ? { value } : refused),
  },
}
