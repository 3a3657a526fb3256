/** One query in a process of its own: `node one-query.ts QUERY EVENTS ROUNDS` prints the result as JSON. */
import { race } from './race.ts'

const [query = '', events, rounds] = process.argv.slice(2)
const result = await race({ query, events: Number(events), rounds: Number(rounds) })
process.stdout.write(`${JSON.stringify(result)}\n`)
