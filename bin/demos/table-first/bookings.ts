/** Bookings drawn from a seed, and what a plain loop over them comes to. */
import type { Booking } from '../../../functions/table-first/topology.ts'
import type { Random } from '../../../lib/testing/simulator/random.ts'
import type { Account } from './consumers.ts'

const startMs = Date.UTC(2026, 2, 1)
const categories = ['food', 'rent', 'travel', 'wages'] as const

export function bookingsOf(random: Random, count: number, accounts: number): readonly Booking[] {
  return Array.from({ length: count }, (_, i) => {
    const category = random.pick(categories)
    const cents = random.integer(1, 100_000) * (category === 'wages' ? 1 : -1)
    return { account: `account-${random.integer(1, accounts)}`, atMs: startMs + i * 1_000, cents, category }
  })
}

/** Shares no code with the topology. */
export function accountsOf(bookings: readonly Booking[]): ReadonlyMap<string, Account> {
  const names = new Set(bookings.map(({ account }) => account))
  return new Map(
    [...names].map((name) => {
      const own = bookings.filter(({ account }) => account === name)
      const sum = (list: readonly Booking[]): number => list.reduce((total, { cents }) => total + cents, 0)
      const byCategory = [...new Set(own.map(({ category }) => category))].map(
        (category) => [category, sum(own.filter((booking) => booking.category === category))] as const,
      )
      const recentCents = own.slice(-3).map(({ cents }) => cents)
      return [name, { balanceCents: sum(own), recentCents, byCategory: new Map(byCategory) }]
    }),
  )
}
