/** Times beyond what a date can be: a timer may be set to any number of ms, and is shown all the same. */
import type { StageStatus } from '../../../bin/cli/operate/stage-status.ts'
import { statusJson, statusLines } from '../../../bin/cli/operate/status-text.ts'
import type { Explanation } from '../../../bin/cli/state-explain.ts'
import type { StatePlace } from '../../../bin/cli/state-place.ts'
import { explanationJson, explanationLines } from '../../../bin/cli/state-text.ts'

const place = { title: 'by-key', slots: 64, log: undefined } as StatePlace

const explained = (timeMs: number, expiresAtSeconds?: number): Explanation => ({
  key: 'a',
  item: { position: 3, states: new Map(), own: {}, expiresAtSeconds } as unknown as Explanation['item'],
  slot: 1,
  partitions: undefined,
  current: undefined,
  own: {},
  timers: [{ domain: 'event-time', name: 'p.never', timeMs, isDue: false, hasDueEntry: true }],
})

const status = (dueMs: number): StageStatus =>
  ({
    ...{ stage: 'by-key', kind: 'keyed', mapping: 'Enabled', generation: 1, isBeingReset: false },
    partitions: [{ partition: '0', isClosed: false, isCaughtUp: true, number: 1, eventTimeMs: 0, dueMs }],
  }) as unknown as StageStatus

test.each([
  [8.64e15, '+275760-09-13T00:00:00.000Z'],
  [8.64e15 + 1, '8640000000000001 ms since 1970'],
  [Number.MAX_SAFE_INTEGER, '9007199254740991 ms since 1970'],
  [Number.MIN_SAFE_INTEGER, '-9007199254740991 ms since 1970'],
])('the time %d is shown as %s', (ms, shown) => {
  expect(explanationLines(place, explained(ms), 0).join('\n')).toContain(`p.never  event-time  ${shown}`)
  expect(JSON.parse(explanationJson(place, explained(ms))).timers).toMatchObject([{ time: shown }])
  expect(statusLines({ title: 'app', note: undefined, flags: '--app app' }, [status(ms)], 0).join('\n')).toContain(
    `  ${shown}  yes`,
  )
  const { stages } = JSON.parse(statusJson({ topology: 'app', note: undefined }, [status(ms)], 0))
  expect(stages[0].partitions).toMatchObject([{ nextDue: shown, eventTime: '1970-01-01T00:00:00.000Z' }])
})

test('a key whose TTL is beyond any date is shown too', () => {
  const far = explained(0, 9e12)
  expect(explanationLines(place, far, 0).join('\n')).toContain(
    'TTL may take the key from 9000000000000000 ms since 1970 on',
  )
  expect(JSON.parse(explanationJson(place, far))).toMatchObject({ expiresAt: '9000000000000000 ms since 1970' })
})
