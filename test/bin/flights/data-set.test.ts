import { execFile } from 'node:child_process'
import { cp, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { AirportRow } from '../../../bin/flights/airports-json.ts'
import { airportsJson } from '../../../bin/flights/airports-json.ts'
import type { FlightRow } from '../../../bin/flights/data-set.ts'

const data = 'node_modules/vega-datasets/data'
let directory: string

/** Evaluates an expression over what the module exports in a process of its own: hyparquet is ESM only, and these tests are CommonJS. */
async function evaluate(expression: string): Promise<unknown> {
  const script = `
    import { readAirports, readFlights } from ${JSON.stringify(resolve('bin/flights/data-set.ts'))}
    const answer = await (${expression}).then((value) => ({ value }), ({ name, message }) => ({ name, message }))
    process.stdout.write(JSON.stringify(answer))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
    maxBuffer: 64 * 1024 * 1024,
  })
  const { value, name, message } = JSON.parse(stdout)
  if (name !== undefined) throw Object.assign(new Error(message), { name })
  return value
}

const readFlights = (from: string, selection: object) =>
  evaluate(`readFlights(${JSON.stringify(from)}, ${JSON.stringify(selection)})`) as Promise<readonly FlightRow[]>
const readAirports = (from: string) =>
  evaluate(`readAirports(${JSON.stringify(from)})`) as Promise<readonly AirportRow[]>

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-data-'))
})
afterEach(() => rm(directory, { recursive: true }))

describe('readFlights', () => {
  test('reads the first rows as the file has them, in the order of the file', async () => {
    const flights = await readFlights(data, { rows: 2 })
    expect(flights).toEqual([
      {
        row: 0,
        scheduled: '2001-01-01T00:01:00',
        delayMinutes: 33,
        distanceMiles: 2176,
        origin: 'LAS',
        destination: 'PHL',
      },
      {
        row: 1,
        scheduled: '2001-01-01T00:01:00',
        delayMinutes: 19,
        distanceMiles: 215,
        origin: 'ATL',
        destination: 'SAV',
      },
    ])
  })

  test('reads the whole first week', async () => {
    const flights = await readFlights(data, { before: '2001-01-08' })
    expect(flights).toHaveLength(113_493)
    expect(flights.at(-1)?.scheduled).toBe('2001-01-07T23:59:00')
  })

  test('goes on over the end of a row group', async () => {
    const flights = await readFlights(data, { rows: 272_730 })
    expect(flights.map(({ row }) => row).slice(-4)).toEqual([272_726, 272_727, 272_728, 272_729])
  })

  test('says in one line what to do when the file is missing', async () => {
    await expect(readFlights(directory, { rows: 1 })).rejects.toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringMatching(
        /^The data file .*flights-3m\.parquet does not exist\. Get it again with `npm ci` .*--data\.$/,
      ),
    })
  })

  test.each(['cut in half', 'of another format', 'empty', 'with a damaged page'])(
    'says in one line what to do when the file is %s',
    async (damage) => {
      const path = join(directory, 'flights-3m.parquet')
      await cp(join(data, 'flights-3m.parquet'), path)
      const file = await open(path, 'r+')
      if (damage === 'cut in half') await file.truncate(6_000_000)
      if (damage === 'of another format') await file.truncate(0).then(() => file.write('flight,date\n'.repeat(100)))
      if (damage === 'empty') await file.truncate(0)
      if (damage === 'with a damaged page') await file.write(Buffer.alloc(50_000, 0x55), 0, 50_000, 1_000)
      await file.close()
      await expect(readFlights(directory, { rows: 1_000 })).rejects.toThrow(
        /^The data file .*flights-3m\.parquet cannot be read: .*Get it again with `npm ci`.*\.$/,
      )
    },
  )
})

describe('readAirports', () => {
  test('reads names with commas and quotes', async () => {
    const airports = await readAirports(data)
    expect(airports).toHaveLength(3_376)
    expect(airports.find(({ iata }) => iata === 'DBN')?.name).toBe('W. H. "Bud" Barron')
    expect(airports.find(({ iata }) => iata === 'RDG')).toMatchObject({ city: 'Reading', state: 'PA' })
  })

  test('says in one line what to do when the file is damaged', async () => {
    await writeFile(join(directory, 'airports.csv'), 'iata,name\nABE,"Lehigh\n')
    await expect(readAirports(directory)).rejects.toThrow(
      /^The data file .*airports\.csv cannot be read: .*npm ci.*\.$/,
    )
  })

  test.each([
    ['empty', ''],
    ['of another format', 'x\n'],
    ['without a row', 'iata,name,city,state,country,latitude,longitude\n'],
    [
      'without its header',
      '00M,Thigpen,Bay Springs,MS,USA,31.95,-89.23\n00R,Livingston,Livingston,TX,USA,30.68,-95.01\n',
    ],
    ['without a column', 'iata,name,city,country\n00M,Thigpen,Bay Springs,USA\n'],
  ])('says in one line what to do when the file is %s', async (_, text) => {
    await writeFile(join(directory, 'airports.csv'), text)
    await expect(readAirports(directory)).rejects.toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringMatching(/^The data file .*airports\.csv cannot be read: .*npm ci.*\.$/),
    })
  })

  test('are what the bundled table of the topology was made of', async () => {
    const bundled = await readFile('functions/flights/airports.json', 'utf8')
    expect(airportsJson(await readAirports(data))).toBe(bundled)
  })
})
