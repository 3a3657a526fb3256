/** `npm run bench:stateless [-- --json FILE]`: what the framework costs a stateless stage. */
import { parseArgs } from 'node:util'
import { finish } from './figures.ts'
import { footprint } from './stateless/footprint.ts'
import { throughput } from './stateless/throughput.ts'

const { values } = parseArgs({ options: { json: { type: 'string' } } })
const figures = [...(await throughput()), ...(await footprint())]
finish('npm run bench:stateless', figures, values.json)
