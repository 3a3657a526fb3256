/**
 * Writes functions/flights/airports.json from the airports file of vega-datasets, so that the Lambda bundle holds the rows:
 * `node bin/flights/generate-airports.ts`. A test compares the two.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { airportsJson } from './airports-json.ts'
import { readAirports } from './data-set.ts'

const root = join(import.meta.dirname, '../..')
const airports = await readAirports(join(root, 'node_modules/vega-datasets/data'))
await writeFile(join(root, 'functions/flights/airports.json'), airportsJson(airports))
