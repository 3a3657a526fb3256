/** How the command shows an output that a sink refused. */
import { letterJson, showLines } from '../../../bin/cli/dead-letter-text.ts'
import { entryAt } from '../../local/dead-letters/dead-letter-world.ts'

const timer = { domain: 'event-time', name: 'hourly', timeMs: Date.UTC(2026, 0, 1, 1) } as const
const value = Buffer.from('{"n":1}').toString('base64')
const entry = entryAt('7', { subPosition: 1, output: { sink: 'alerts', index: 2, value, timer } })
const letter = { handle: 'f3589756', entry, redrivenAtMs: undefined, places: [] }

test('show tells the sink, the place, the timer and the value of it', () => {
  const lines = showLines(letter)
  expect(lines).toContainEqual(expect.stringMatching(/^output +number 3 to sink alerts$/))
  expect(lines).toContainEqual(expect.stringMatching(/^timer +hourly \(event-time\), due 2026-01-01T01:00:00/))
  expect(lines).toContainEqual(expect.stringMatching(/^position +7$/))
  const at = lines.indexOf('refused output: 7 bytes, UTF-8')
  expect(lines[at + 1]).toBe('  {"n":1}')
})

test('JSON tells which it is, and not what it held', () => {
  const shown = JSON.parse(letterJson(letter))
  expect(shown.output).toEqual({ sink: 'alerts', index: 2, timer })
})
