/** How the command shows an output that a sink refused. */
import { letterJson, showLines } from '../../../bin/cli/dead-letter-text.ts'
import { deadLetterHandle } from '../../../lib/aws/dead-letters/reading.ts'
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

test('a letter whose record is in another names that one, and shows its own value', () => {
  const recordIn = `${entry.id}/alerts/0`
  const other = { ...letter, entry: { ...entry, formatVersion: 2 as const, payload: null, key: null, recordIn } }
  const lines = showLines(other)
  expect(lines).toContainEqual(`The record is in the dead letter ${deadLetterHandle(recordIn)}: ${recordIn}.`)
  expect(lines).toContain('refused output: 7 bytes, UTF-8')
  expect(lines.join('\n')).not.toContain('payload')
  expect(JSON.parse(letterJson(other))).toMatchObject({ recordIn })
  const offloaded = { bucket: 'b', key: 'k' }
  const large = showLines({ ...other, entry: { ...other.entry, offloaded } })
  expect(large.slice(-2)).toEqual([
    expect.stringMatching(/^The record is in the dead letter /),
    'The whole entry is in s3://b/k.',
  ])
})

test('a timer that waits for a time which is no date is shown by its number', () => {
  const far = { ...timer, timeMs: 9e15 }
  const lines = showLines({ ...letter, entry: { ...entry, output: { sink: 'alerts', index: 2, value, timer: far } } })
  expect(lines).toContainEqual(
    expect.stringMatching(/^timer +hourly \(event-time\), due 9000000000000000 ms since 1970$/),
  )
})
