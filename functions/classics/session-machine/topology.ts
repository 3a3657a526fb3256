/** Session state machine: a visit goes from browsing over the basket to paid. What its state does not allow goes to a side output. */
import * as z from 'zod'
import { epochMs, minutes, sideOutput, Topology, valueState } from '../../../lib/index.ts'

export const Click = z.object({ visitor: z.string().min(1), atMs: z.int(), action: z.enum(['view', 'add', 'pay']) })
export type Click = z.infer<typeof Click>
type State = 'new' | 'browsing' | 'basket' | 'paid'
export interface Transition {
  readonly visitor: string
  readonly from: State
  readonly to: State
}

const next: Readonly<Record<State, Partial<Record<Click['action'], State>>>> = {
  new: { view: 'browsing', add: 'basket' },
  browsing: { view: 'browsing', add: 'basket' },
  basket: { view: 'basket', add: 'basket', pay: 'paid' },
  paid: { view: 'browsing', add: 'basket' },
}

export const sessionMachineApp = new Topology('session-machine')
export const clicks = sessionMachineApp.source('clicks', Click, { eventTime: epochMs(({ atMs }) => atMs) })
export const transitions = sessionMachineApp.sink<Transition>('transitions', { key: ({ visitor }) => visitor })
export const refusedClicks = sessionMachineApp.sink<Click>('refused-clicks', { key: ({ visitor }) => visitor })

const sessions = clicks
  .keyBy('by-visitor', ({ visitor }) => visitor)
  .process('session', {
    state: { at: valueState<State>({ ttl: { by: 'event-time', after: minutes(30) } }) },
    sides: { refused: sideOutput<Click>() },
    step(click, { key, state, sides }) {
      const from = state.at.get() ?? 'new'
      const to = next[from][click.action]
      if (to === undefined) return sides.refused.emit(click)
      state.at.set(to)
      return from === to ? [] : [{ visitor: key, from, to }]
    },
  })
sessions.to(transitions)
sessions.sides.refused.to(refusedClicks)
