/** Running counter: how often each page was viewed. */
import * as z from 'zod'
import { Topology } from '../../../lib/index.ts'

export const View = z.object({ page: z.string().min(1) })
export type View = z.infer<typeof View>
export interface PageViews {
  readonly page: string
  readonly views: number
}

export const runningCounterApp = new Topology('running-counter')
export const views = runningCounterApp.source('views', View)
export const pageViews = runningCounterApp.sink<PageViews>('page-views', { key: ({ page }) => page })

views
  .keyBy('by-page', ({ page }) => page)
  .aggregate(
    'views-per-page',
    { init: () => 0, add: (count) => count + 1, result: (count) => count },
    { emit: 'on-update' },
  )
  .map((count, { key = '' }) => ({ page: key, views: count }))
  .to(pageViews)
