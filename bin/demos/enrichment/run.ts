/** The demo of enrichment: a static table, one that is refreshed in the background, and a batched and cached lookup. */
import { join } from 'node:path'
import { type Figure, median } from '../../../bench/figures.ts'
import { enrichmentApp } from '../../../functions/enrichment/topology.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { LiveDisplay } from '../../../lib/local/display/live-display.ts'
import { grouped } from '../../../lib/local/display/run-display.ts'
import { type LocalApplication, startLocalApplication } from '../../../lib/local/run/application.ts'
import { until } from '../../flights/processing.ts'
import { send } from '../input.ts'
import { EnrichedOrders, recordOf } from './orders.ts'
import { type ReferenceService, startReferenceService } from './reference-service.ts'
import { type Refusal, refusals } from './refused-steps.ts'
import { TableMetrics } from './table-metrics.ts'

export interface EnrichmentSettings {
  readonly seconds: number
  /** Orders a second. */
  readonly rate: number
  readonly shards: number
  readonly workers: number
}

interface View {
  readonly sent: number
  readonly orders: EnrichedOrders
  readonly metrics: TableMetrics
}

const root = join(import.meta.dirname, '../../..')
const { nowMs } = systemClock
const feedEveryMs = 50
/** What functions/enrichment/topology.ts allows. */
const maxStalenessMs = 10_000
const lookupTtlMs = 5_000

const renderer = {
  block: (view: View) => partsOf(view),
  line: (view: View, atMs: number) => [`${new Date(atMs).toISOString().slice(0, 19)}Z`, ...partsOf(view)].join(' | '),
}

function partsOf({ sent, orders, metrics }: View): readonly string[] {
  const { batches, hits, misses, lookupCalls, mostCalls, hitRate, stalenessMs } = metrics
  return [
    `sent ${grouped(sent)}, enriched ${grouped(orders.count)}`,
    `prices: list ${Math.max(0, ...orders.priceLists)}, ${((stalenessMs.at(-1) ?? 0) / 1_000).toFixed(1)} s old`,
    `customers: ${grouped(hits)} cache hits, ${grouped(misses)} misses (${Math.round(hitRate * 100)} % hits)`,
    `${grouped(lookupCalls)} calls in ${grouped(batches)} batches, at most ${mostCalls} per batch`,
  ]
}

/** Runs the demo and resolves with its figures. */
export async function runEnrichment(settings: EnrichmentSettings, signal: AbortSignal): Promise<readonly Figure[]> {
  const { shards, workers } = settings
  const display = new LiveDisplay<View>(process.stdout, nowMs, renderer)
  for (const text of [
    'Orders get their country from a static table, their price from a table that is refreshed each second in the background, and their customer from a lookup: one call per batch, and rows are kept for 5 s.',
    'The price list changes each second. What the function says of its tables is read from its log, in the metric format of CloudWatch; the service counts its calls too.',
  ]) {
    display.say(text)
  }
  const service = await startReferenceService(systemClock)
  const metrics = new TableMetrics()
  const orders = new EnrichedOrders()
  const app = await startLocalApplication({
    topology: enrichmentApp,
    entry: join(root, 'functions/enrichment/handler.ts'),
    directory: '.millrace/demo-enrichment',
    fresh: true,
    shards,
    workers,
    environment: { REFERENCE_URL: service.url },
    mapping: { maximumBatchingWindowInSeconds: 0, emulation: { pollIntervalMs: 200 } },
    onMetrics: (_stage, _workerId, values) => metrics.take(values),
    onOutput: (output, records) => {
      if (output === 'orders-enriched') orders.take(records)
    },
  }).catch(async (error) => {
    await service.close()
    throw error
  })
  try {
    const sent = await replay(app, settings, signal, (count) => display.show(() => ({ sent: count, orders, metrics })))
    display.show(() => ({ sent, orders, metrics }), 'now')
    display.keep()
    const refused = await refusals()
    for (const text of refusalLines(refused)) display.say(text)
    return figuresOf({ sent, orders, metrics }, service, refused)
  } finally {
    await app.stop()
    await service.close()
  }
}

/** Sends orders evenly and waits until all have come out. Resolves with their number. */
async function replay(
  app: LocalApplication,
  { seconds, rate, shards }: EnrichmentSettings,
  signal: AbortSignal,
  show: (sent: number) => void,
): Promise<number> {
  const stream = { streamName: app.streamOf('orders').streamName, shards }
  await app.run()
  const startMs = nowMs()
  let sent = 0
  while (!signal.aborted && nowMs() < startMs + seconds * 1_000) {
    const due = Math.floor(((nowMs() - startMs) / 1_000) * rate)
    const from = sent
    await send(
      app.client,
      stream,
      Array.from({ length: due - from }, (_, index) => recordOf(from + index)),
    )
    sent = due
    show(sent)
    await systemClock.sleep(feedEveryMs, signal)
  }
  const forever = new AbortController().signal
  const sentAtMs = nowMs()
  await until(
    () => app.hasProcessed(sentAtMs),
    forever,
    () => show(sent),
  )
  const doneAtMs = nowMs()
  await until(
    () => app.hasReadOutputs(doneAtMs),
    forever,
    () => show(sent),
  )
  return sent
}

function refusalLines(refused: readonly Refusal[]): readonly string[] {
  return [
    '',
    'A call per record cannot be written by accident. The compiler refuses each of these steps (bin/demos/enrichment/refused-steps.ts,',
    'checked by `npm run types`), and where it is silenced the runtime makes the record a dead letter:',
    ...refused.map(({ step, code, message }) => `  ${step}: ${code ?? 'NOT REFUSED'}: ${message}`),
  ]
}

function figuresOf(
  { sent, orders, metrics }: View,
  { calls }: ReferenceService,
  refused: readonly Refusal[],
): Figure[] {
  const { batches, lookupCalls, mostCalls, hits, misses, hitRate, stalenessMs } = metrics
  const isRefused = ({ code, reachedSink }: Refusal) => code === 'asynchronous-step' && !reachedSink
  const atMost = (name: string, value: number, unit: string, goal: number): Figure => ({
    ...{ name, value, unit, goal },
    better: 'lower',
  })
  return [
    { name: 'orders sent', value: sent, unit: 'records' },
    atMost('lost', sent - orders.count, 'records', 0),
    atMost('enriched wrongly', orders.wrong, 'records', 0),
    { name: 'price lists used', value: orders.priceLists.size, unit: '', goal: 2 },
    { name: 'staleness of the prices, median', value: median(stalenessMs) ?? 0, unit: 'ms' },
    atMost('staleness of the prices, worst', Math.max(0, ...stalenessMs), 'ms', maxStalenessMs),
    { name: 'batches', value: batches, unit: '' },
    { name: 'lookup calls', value: lookupCalls, unit: '' },
    atMost('lookup calls per batch, at most', mostCalls, '', 1),
    atMost('lookup calls that the service counted otherwise', Math.abs(lookupCalls - calls.customers), '', 0),
    { name: 'orders per lookup call', value: sent / Math.max(1, lookupCalls), unit: 'records' },
    { name: 'cache hits', value: hits, unit: 'keys' },
    { name: 'cache misses', value: misses, unit: 'keys' },
    { name: 'cache hit rate', value: hitRate * 100, unit: '%' },
    atMost('oldest row from the cache', orders.oldestTierMs, 'ms', lookupTtlMs),
    { name: 'per-record calls refused', value: refused.filter(isRefused).length, unit: '', goal: refused.length },
  ]
}
