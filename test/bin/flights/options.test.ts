import { commandFor, parseOptions } from '../../../bin/flights/options.ts'

test('the defaults are the first week, as fast as it goes, on four shards', () => {
  expect(parseOptions([])).toEqual({
    limit: undefined,
    speed: 'max',
    shards: 4,
    fresh: false,
    json: undefined,
    corrupt: 0,
    port: 0,
    data: undefined,
    help: false,
  })
})

test('reads every flag', () => {
  const args = '--limit 10 --speed 3600 --shards 2 --fresh --json f.json --corrupt 3 --port 4567 --data d'
  expect(parseOptions(args.split(' '))).toEqual({
    limit: 10,
    speed: 3_600,
    shards: 2,
    fresh: true,
    json: 'f.json',
    corrupt: 3,
    port: 4_567,
    data: 'd',
    help: false,
  })
})

test.each([
  [['--colour'], "Unknown option '--colour'."],
  [['week'], "Unexpected argument 'week'."],
  [['--limit'], "Option '--limit <value>' argument missing."],
  [['--fresh=yes'], "Option '--fresh' does not take an argument."],
  [['--limit', '-1'], '--limit -1 is not a whole number from 1 to 500,000. `npm start -- --help` lists the flags.'],
  [['--speed', '-2'], '--speed -2 is neither max nor a number above 0'],
  [['--json', '--fresh'], '--json has no value: --fresh follows it.'],
  [['--limit', '0'], '--limit 0 is not a whole number from 1 to 500,000.'],
  [['--limit', '1e3'], '--limit 1e3 is not a whole number'],
  [['--limit', '600000'], '--limit 600000 is not a whole number from 1 to 500,000.'],
  [['--corrupt=-1'], '--corrupt -1 is not a whole number from 0'],
  [['--shards', '0'], '--shards 0 is not a whole number from 1 to 64.'],
  [['--speed', 'fast'], '--speed fast is neither max nor a number above 0'],
  [['--speed', '0'], '--speed 0 is neither'],
  [['--port', '70000'], '--port 70000 is not a whole number from 0 to 65,535.'],
])('refuses %j in one line', (args, message) => {
  const refusal = (() => {
    try {
      return parseOptions(args)
    } catch (error) {
      return error as Error & { code: string }
    }
  })()
  expect(refusal).toMatchObject({ code: 'usage', message: expect.stringContaining(message) })
  expect((refusal as Error).message).not.toContain('\n')
})

test('the command to go on with has the flags that name the run', () => {
  expect(commandFor({ limit: undefined, corrupt: 0, shards: 4 })).toBe('npm start')
  expect(commandFor({ limit: 10, corrupt: 2, shards: 8 })).toBe('npm start -- --limit 10 --corrupt 2 --shards 8')
})
