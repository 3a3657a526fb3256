import { runCommand } from '../../../bin/cli/commands.ts'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import { type EmbeddedTables, startTables, stateStore } from '../embedded-tables.ts'

const { signal } = new AbortController()
const said: string[] = []
const say = (line: string): void => void said.push(line)
let tables: EmbeddedTables

beforeAll(async () => {
  tables = await startTables()
})
afterAll(() => tables.close())

const storeOn = (tableName: string) => stateStore(tables.client, 'by-key', tableName)

test('a restored table gets the progress of the earlier one and an entry for each timer', async () => {
  const later = await storeOn('later')
  const earlier = await storeOn('earlier')
  await later.writeManifest({ format: 1, topology: 'app', stage: 'by-key', slots: 1 }, signal)
  const own = { timers: { 'event-time': { window: 7_000, other: 5_000 } } }
  const item = { position: 9, states: {}, expiresAtSeconds: undefined, own }
  await later.commit({ key: 'a', readPosition: undefined, item, entries: [] }, signal)
  await later.putDue([{ slot: 0, domain: 'event-time', timeMs: 3_000, key: 'gone' }], signal)
  await later.writeProgress('p', 0, 'too new', signal)
  await earlier.writeProgress('p', 0, 'safely earlier', signal)
  const code = await runCommand(['state', 'mend', 'later', '--earlier', 'earlier', '--endpoint', tables.url], say)
  expect(code).toBe(0)
  expect(said).toEqual([
    'later is whole: 1 key as they are, progress of 1 partition from earlier, 1 timer found again. Let the stage read its stream from its beginning.',
  ])
  expect((await later.readProgress('p', signal))?.value).toBe('safely earlier')
  const { entries } = await later.readDue(0, 'event-time', 10_000, { limit: 10 }, signal)
  expect(entries).toEqual([{ slot: 0, domain: 'event-time', timeMs: 5_000, key: 'a' }])
  expect((await later.readKeys(['a'], signal)).get('a')).toMatchObject({ position: 9 })
})

test.each([
  [['state', 'mend', 'later'], '`millrace state mend` needs --earlier'],
  [['state', 'mend', 'later', '--earlier', 'later'], '--earlier is to be another table'],
  [['state', 'mend', 'later', '--earlier', 'earlier', '--stage', 'by-key'], '--stack and --stage go together'],
])('%j is refused', async (typed, message) => {
  await expect(runCommand(typed, say)).rejects.toThrow(message)
})

test('what cannot be reached, or is not there, is said in a line, without a stack trace', async () => {
  const mend = (table: string, endpoint: string) =>
    runCommand(['state', 'mend', table, '--earlier', 'before', '--endpoint', endpoint], say)
  await expect(mend('nowhere', tables.url)).rejects.toThrow(
    /^The table nowhere cannot be read: ResourceNotFoundException: .*$/,
  )
  const refused = await mend('nowhere', 'http://127.0.0.1:1').catch((error) => error)
  expect(refused).toBeInstanceOf(ConfigurationError)
  expect(refused.message).toContain('The table nowhere cannot be read: ')
})
