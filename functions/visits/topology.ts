import * as z from 'zod'
import { Topology } from '../../lib/index.ts'

export const Visit = z.object({ user: z.string().min(1), page: z.string() })
export type Visit = z.infer<typeof Visit>

export interface VisitCount {
  readonly user: string
  readonly visits: number
}

export const visitsApp = new Topology('visits-app')

export const visits = visitsApp.source('visits', Visit)
export const visitCounts = visitsApp.sink<VisitCount>('visit-counts', { key: ({ user }) => user })

/** How often each user came, ever: a state that grows with the number of users. */
visits
  .keyBy('by-user', ({ user }) => user)
  .aggregate(
    'count',
    {
      init: (): VisitCount => ({ user: '', visits: 0 }),
      add: (count, { user }) => ({ user, visits: count.visits + 1 }),
      result: (count) => count,
    },
    { emit: 'per-batch' },
  )
  .to(visitCounts)
