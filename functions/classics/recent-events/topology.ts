/** Recent-event list: the last five logins of each account. */
import * as z from 'zod'
import { days, epochMs, listState, Topology } from '../../../lib/index.ts'

export const Login = z.object({ account: z.string().min(1), atMs: z.int(), address: z.string() })
export type Login = z.infer<typeof Login>
export interface RecentLogins {
  readonly account: string
  readonly logins: readonly Login[]
}

export const recentEventsApp = new Topology('recent-events')
export const logins = recentEventsApp.source('logins', Login, { eventTime: epochMs(({ atMs }) => atMs) })
export const recentLogins = recentEventsApp.sink<RecentLogins>('recent-logins', { key: ({ account }) => account })

logins
  .keyBy('by-account', ({ account }) => account)
  .process('recent', {
    state: { logins: listState<Login>({ atMost: 5, ttl: { by: 'event-time', after: days(90) } }) },
    step(login, { key, state }) {
      state.logins.add(login)
      return [{ account: key, logins: state.logins.get() }]
    },
  })
  .to(recentLogins)
