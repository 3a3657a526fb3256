/** A key of which only records came whose event time is beyond the skew limit: they move no time, and their state has a TTL. */
import { milliseconds } from '../../lib/core/duration.ts'
import { KeyDraft, linkStates } from '../../lib/state/key-draft.ts'
import type { KeyItem } from '../../lib/state/state-store.ts'
import { valueState } from '../../lib/state/states.ts'

const never = Number.NEGATIVE_INFINITY
const states = { v: valueState<number>({ ttl: { by: 'event-time', after: milliseconds(10) } }) }

function draftOf(item?: KeyItem) {
  const draft = new KeyDraft('h1', item, new Map(Object.entries(states)))
  const view = linkStates(
    states,
    (name) => name,
    () => draft,
  )
  const step = <T>(eventTimeMs: number, arrivalTimeMs: number, run: (state: typeof view) => T): T => {
    draft.begin({ eventTimeMs, arrivalTimeMs })
    const result = run(view)
    draft.accept(draft.position + 1)
    return result
  }
  return { step, commit: () => draft.commit(1_000_000, 86_400_000).item }
}

test.each([
  ['within one batch', false],
  ['when the key is read again', true],
])('the value counts from the arrival of the record, %s', (_, isReadAgain) => {
  const first = draftOf()
  first.step(never, 500, ({ v }) => v.set(1))
  expect(first.step(never, 900, ({ v }) => v.get())).toBe(1)
  const item = first.commit()
  expect(item).toMatchObject({ own: { states: { v: { touchedMs: 500 } } } })
  expect(item.expiresAtSeconds).toBe(Math.ceil((1_000_000 + 2 * 86_400_000 + 10) / 1_000))
  const { step } = isReadAgain ? draftOf(item) : first
  expect(step(509, 0, ({ v }) => v.get())).toBe(1)
  expect(step(510, 0, ({ v }) => v.get())).toBeUndefined()
})
