/** One airport as the file has it; `NA` stands for a city or state that it does not know. */
export interface AirportRow {
  readonly iata: string
  readonly name: string
  readonly city: string
  readonly state: string
  readonly country: string
}

/** The text of functions/flights/airports.json: one airport per line, as code, name, city and state. */
export function airportsJson(airports: readonly AirportRow[]): string {
  const lines = airports.map(({ iata, name, city, state }) => {
    const fields = [iata, name, city, state].map((field) => JSON.stringify(field))
    return `  [${fields.join(', ')}]`
  })
  return `[\n${lines.join(',\n')}\n]\n`
}
