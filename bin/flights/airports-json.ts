import type { AirportRow } from './data-set.ts'

/** The text of functions/flights/airports.json: one airport per line, as code, name, city and state. */
export function airportsJson(airports: readonly AirportRow[]): string {
  const lines = airports.map(({ iata, name, city, state }) => {
    const fields = [iata, name, city, state].map((field) => JSON.stringify(field))
    return `  [${fields.join(', ')}]`
  })
  return `[\n${lines.join(',\n')}\n]\n`
}
