/**
 * One execution environment: imports a bundle, hands it a first batch, then warm ones, and prints what that took.
 * `node --expose-gc one-environment.ts BUNDLE`. Events are made before the clock starts, as Lambda makes them elsewhere.
 */
import { pathToFileURL } from 'node:url'
import { kinesisEvent, lambdaContext } from '../../lib/testing/index.ts'
import { paymentsOf } from './pipeline.ts'

const events = (count: number, bytes: number) =>
  JSON.parse(JSON.stringify(kinesisEvent(paymentsOf(count, bytes), { source: { name: 'payments' } })))
const first = events(100, 200)
const warm = events(1_000, 2_000)
const context = lambdaContext({ remainingMs: 60_000 })

const startMs = performance.now()
const { handler } = await import(pathToFileURL(process.argv[2] as string).href)
const answer = await handler(first, context)
const coldStartMs = performance.now() - startMs
if (answer.batchItemFailures.length > 0) throw new Error('the first batch was not taken')

globalThis.gc?.()
const idle = process.memoryUsage().heapUsed
let peak = idle
const watch = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage().heapUsed)
}, 1)
for (let batch = 0; batch < 50; batch++) {
  await handler(warm, context)
  peak = Math.max(peak, process.memoryUsage().heapUsed)
}
clearInterval(watch)
process.stdout.write(`${JSON.stringify({ coldStartMs, peakHeapMb: peak / 1e6 })}\n`)
