/** Accounts that anybody may look up: the state is the result, so there is no sink. Readers take `accountState` from here. */
import * as z from 'zod'
import { epochMs, listState, mapState, reducingState, Topology } from '../../lib/index.ts'

export const Booking = z.object({
  account: z.string().min(1),
  atMs: z.int(),
  /** Below 0 where it leaves the account. */
  cents: z.int(),
  category: z.string().min(1),
})
export type Booking = z.infer<typeof Booking>

/** A booking as the account shows it. */
export type Line = { readonly atMs: number; readonly cents: number; readonly category: string }

/** What is kept of each account, for the step below and for whoever reads the table. */
export const accountState = {
  balanceCents: reducingState<number>((before, cents) => before + cents),
  lines: listState<Line>({ atMost: 3 }),
  byCategory: mapState<number>(),
}

export const tableFirstApp = new Topology('table-first')

export const bookings = tableFirstApp.source('bookings', Booking, { eventTime: epochMs(({ atMs }) => atMs) })

bookings
  .keyBy('by-account', ({ account }) => account)
  .process('account', {
    state: accountState,
    prefetch: ({ category }) => ({ byCategory: [category] }),
    step({ atMs, cents, category }, { state }) {
      state.balanceCents.add(cents)
      state.lines.add({ atMs, cents, category })
      state.byCategory.set(category, (state.byCategory.get(category) ?? 0) + cents)
    },
  })
