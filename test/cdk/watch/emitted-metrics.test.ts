/**
 * What alarms and dashboard look at is what the functions write: the lines of a run with the production metrics, in which everything
 * goes wrong that has a metric.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Template } from 'aws-cdk-lib/assertions'
import type { KinesisStreamEvent } from 'aws-lambda'
import { z } from 'zod'
import { lambdaMetrics, meteredBy } from '../../../lib/aws/handler/observability.ts'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { bind, KinesisSink, KinesisSource, StreamApplication } from '../../../lib/cdk/index.ts'
import { alarmRules } from '../../../lib/cdk/watch/alarm-rules.ts'
import {
  count,
  epochMs,
  hours,
  minutes,
  RetryableError,
  type SinkHandle,
  TerminalError,
  Topology,
  tumbling,
  valueState,
} from '../../../lib/index.ts'
import { metricsIn } from '../../../lib/local/run/metric-lines.ts'
import { announceEvent } from '../../../lib/plan/stage-bindings.ts'
import { kinesisEvent, lambdaContext } from '../../../lib/testing/events.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { type SentCall, StateTable } from '../../aws/state-table/state-table.ts'
import { entry, newStack, newStream } from '../world.ts'

const startMs = Date.UTC(2026, 0, 1)
const page = (name: string) => readFileSync(join(__dirname, '../../../docs', name), 'utf8')

/** "events" feeds "by-key"; "pages" keeps nothing. */
function topology() {
  const app = new Topology('watched')
  const events = app.source('events', z.object({ key: z.string(), t: z.number() }), {
    eventTime: epochMs(({ t }) => t),
    skewLimit: hours(1),
  })
  const pages = app.source('pages', z.object({ page: z.string() }))
  const results = app.sink<unknown>('results')
  const late = app.sink<unknown>('late')
  const views = app.sink<string>('views')
  const seen = app.sink<string>('seen')
  const faults: { thrown: Error | undefined; key: string } = { thrown: undefined, key: '' }
  const failing = <T>(value: T, key: string): T => {
    if (faults.thrown && key === faults.key) throw faults.thrown
    return value
  }
  const checked = events.map((event) => failing(event, `events ${event.key}`))
  checked.map(({ key }) => key).to(seen)
  const keyed = checked.keyBy('by-key', ({ key }) => key, { slots: 1 })
  keyed
    .process('last', {
      state: { last: valueState<number>() },
      step: ({ key, t }) => [failing(`${key} ${t}`, `by-key ${key}`)],
    })
    .to(seen)
  const windowed = keyed
    .window(tumbling(minutes(5), { grace: minutes(0) }))
    .aggregate('counted', { n: count() }, { emit: 'on-close' })
  windowed.results.to(results)
  windowed.late.to(late)
  pages.map(({ page }) => failing(page, 'pages')).to(views)
  return { app, events, pages, sinks: [results, late, views, seen], faults }
}

/** The functions of a deployment, each with the metrics of its own stage. */
class Functions {
  readonly parts = topology()
  readonly table = new StateTable()
  /** Runs before each call of a table. */
  before: (call: SentCall) => unknown = () => undefined
  readonly #ports = memoryPorts()
  readonly #handlers = new Map<string, ReturnType<typeof streamHandler>>()
  #sent = 0

  handler(stage: string): ReturnType<typeof streamHandler> {
    const known = this.#handlers.get(stage)
    if (known) return known
    const metrics = lambdaMetrics({ application: 'watched', stage })
    const table = stage === 'by-key' ? this.table : new StateTable()
    table.before = (call) => this.before(call)
    const store = table.store({ stage, ...meteredBy(metrics) })
    const state = (name: string) => (name === stage ? store : this.#ports.state(name))
    const ports = { ...this.#ports, metrics, flush: () => metrics.flush(), state }
    const handler = streamHandler(this.parts.app, { ports })
    this.#handlers.set(stage, handler)
    return handler
  }

  /** Events that stand so many minutes behind the start, and what they become for the keyed stage. */
  async send(...values: readonly ({ key: string; minute: number } | string)[]): Promise<readonly KinesisStreamEvent[]> {
    const payloads = values.map((value) =>
      typeof value === 'string' ? value : { key: value.key, t: startMs + value.minute * 60_000 },
    )
    const event = kinesisEvent(payloads, { source: this.parts.events, firstIndex: this.#sent })
    this.#sent += values.length
    await this.handler('events')(event, lambdaContext())
    await this.handler('events')(announceEvent, lambdaContext())
    return this.#ports.takeFrames('by-key')
  }

  async sendPages(...payloads: readonly unknown[]): Promise<void> {
    await this.handler('pages')(kinesisEvent(payloads, { source: this.parts.pages }), lambdaContext())
  }

  async take(events: readonly KinesisStreamEvent[]): Promise<void> {
    for (const event of events) await this.handler('by-key')(event, lambdaContext())
  }
}

async function everythingGoesWrong(functions: Functions): Promise<void> {
  await stepsFail(functions)
  await functions.take(await functions.send({ key: 'a', minute: 0 }, { key: 'b', minute: 0 }))
  // The shard hears of its upstreams in what is announced, so from here on it has a watermark.
  await functions.take(await functions.send({ key: 'a', minute: 1 }, 'no JSON', { key: 'a', minute: 600 }))
  await functions.take(await functions.send({ key: 'a', minute: 20 }))
  await functions.take(await functions.send({ key: 'b', minute: 2 }))
  const [one, other] = [await functions.send({ key: 'c', minute: 21 }), await functions.send({ key: 'c', minute: 22 })]
  await functions.take([...withData(one, other[0]), ...withData(other, one[0])])
  const [again] = await functions.send({ key: 'c', minute: 23 })
  await functions.take([again as KinesisStreamEvent])
  await functions.take(withData(await functions.send({ key: 'c', minute: 24 }), again))
  await tableRefuses(functions)
}

/** For a while, then for good: in each stage a record comes again, and another is given up. */
async function stepsFail(functions: Functions): Promise<void> {
  const { faults } = functions.parts
  const send = {
    pages: () => functions.sendPages({ page: '/' }),
    'events x': () => functions.send({ key: 'x', minute: 0 }),
    'by-key x': async () => functions.take(await functions.send({ key: 'x', minute: 0 })),
  }
  for (const [key, run] of Object.entries(send)) {
    faults.key = key
    for (const thrown of [new RetryableError('later'), new TerminalError('never')]) {
      faults.thrown = thrown
      await run()
    }
  }
  faults.thrown = undefined
  await functions.sendPages({ page: '/' })
}

/** Each table has too many calls once, and then two attempts at one batch meet. */
async function tableRefuses(functions: Functions): Promise<void> {
  const refused = new Set<string>()
  functions.before = ({ operation }) => {
    if (refused.has(operation)) return
    refused.add(operation)
    throw Object.assign(new Error('slower'), { name: 'ProvisionedThroughputExceededException' })
  }
  const frames = await functions.send({ key: 'd', minute: 25 })
  refused.clear()
  await functions.take(frames)
  let isRaced = false
  functions.before = () => undefined
  const raced = await functions.send({ key: 'd', minute: 26 })
  functions.before = async ({ operation, input }) => {
    const isCommit = operation === 'PutItem' && String((input as never as Put).Item?.pk.S).startsWith('key#')
    if (!isCommit || isRaced) return
    isRaced = true
    await functions.take(raced)
  }
  await functions.take(raced)
}

interface Put {
  readonly Item?: { readonly pk: { readonly S: string } }
}

/** The events, whose first record has the data of another's. */
function withData(
  events: readonly KinesisStreamEvent[],
  from: KinesisStreamEvent | undefined,
): readonly KinesisStreamEvent[] {
  return events.map((event, i) => {
    const [first, ...others] = event.Records
    const data = from?.Records[0]?.kinesis.data
    if (i > 0 || first === undefined || data === undefined) return event
    return { Records: [{ ...first, kinesis: { ...first.kinesis, data } }, ...others] }
  })
}

/** Runs with the production metrics, and returns the lines that they wrote. */
async function linesOf(run: () => Promise<void>): Promise<readonly string[]> {
  const lines: string[] = []
  const log = jest.spyOn(console, 'log').mockImplementation((text) => void lines.push(text))
  const write = jest.spyOn(process.stdout, 'write').mockImplementation((text) => lines.push(String(text)) > 0)
  // Makes Powertools write through the console that jest holds; by itself it would then write no metrics at all.
  const development = { POWERTOOLS_DEV: 'true', POWERTOOLS_METRICS_DISABLED: 'false' }
  Object.assign(process.env, development)
  try {
    await run()
  } finally {
    log.mockRestore()
    write.mockRestore()
    for (const name of Object.keys(development)) delete process.env[name]
  }
  return lines
}

interface EmbeddedLine {
  readonly application: string
  readonly stage: string
  readonly _aws: { readonly CloudWatchMetrics: readonly { readonly Dimensions: readonly (readonly string[])[] }[] }
}

/** `by-key late-per-1000-records`, for every metric of every line. */
function emittedIn(lines: readonly string[]): ReadonlySet<string> {
  const emitted = lines.flatMap((line) => {
    const metrics = metricsIn(line)
    if (metrics === undefined) return []
    const { application, stage, _aws } = JSON.parse(line) as EmbeddedLine
    expect(application).toBe('watched')
    expect(_aws.CloudWatchMetrics.map(({ Dimensions }) => Dimensions)).toEqual([[['application', 'stage']]])
    for (const [name, values] of metrics) expect([name, values.length > 0]).toEqual([name, true])
    return [...metrics.keys()].map((name) => `${stage} ${name}`)
  })
  return new Set(emitted)
}

/** What alarms and widgets name in the namespace, in the same words. */
function namedIn(template: Template): ReadonlySet<string> {
  const alarms = Object.values(template.findResources('AWS::CloudWatch::Alarm')).flatMap(({ Properties }) => {
    if (Properties.Namespace !== 'Millrace') return []
    const [application, stage] = Properties.Dimensions
    expect(application).toEqual({ Name: 'application', Value: 'watched' })
    return [`${stage.Value} ${Properties.MetricName}`]
  })
  const [dashboard] = Object.values(template.findResources('AWS::CloudWatch::Dashboard'))
  const parts: unknown[] = dashboard?.Properties.DashboardBody['Fn::Join'][1]
  const body = JSON.parse(parts.map((part) => (typeof part === 'string' ? part : 'token')).join(''))
  const widgets = body.widgets.flatMap(({ properties }: { properties: { metrics?: string[][] } }) =>
    (properties.metrics ?? []).flatMap(([namespace, name, dimension, application, other, stage]) => {
      if (namespace !== 'Millrace') return []
      expect([dimension, application, other]).toEqual(['application', 'watched', 'stage'])
      return [`${stage} ${name}`]
    }),
  )
  return new Set([...alarms, ...widgets])
}

function deployed(): Template {
  const stack = newStack()
  const { app, events, pages, sinks } = topology()
  new StreamApplication(stack, 'Watched', {
    topology: app,
    entry,
    bind: [
      bind(events, new KinesisSource(newStream(stack, 'Events'))),
      bind(pages, new KinesisSource(newStream(stack, 'PageViews'))),
      ...sinks.map((sink) => bind(sink as SinkHandle<unknown>, new KinesisSink(newStream(stack, `Out-${sink.name}`)))),
    ],
  })
  return Template.fromStack(stack)
}

test('every metric that an alarm or a widget looks at is written by a run, with the same dimensions', async () => {
  const functions = new Functions()
  const emitted = emittedIn(await linesOf(() => everythingGoesWrong(functions)))
  const named = namedIn(deployed())
  expect(named.size).toBeGreaterThan(30)
  expect([...named].filter((name) => !emitted.has(name))).toEqual([])
})

test('docs/metrics.md has a row for every metric that is written', async () => {
  const functions = new Functions()
  const emitted = emittedIn(await linesOf(() => everythingGoesWrong(functions)))
  const rows = new Set(
    [...page('metrics.md').matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, names = '']) => names.split(', ')),
  )
  const missing = [...emitted].map((name) => `\`${name.split(' ')[1]}\``).filter((name) => !rows.has(name))
  expect(missing).toEqual([])
})

test('docs/operations.md says of every alarm what now, and of every metric on the dashboard what it means', () => {
  const text = page('operations.md')
  for (const name of [...Object.keys(alarmRules), 'announcer errors', 'announcer silent']) {
    expect(text).toMatch(new RegExp(`^\\| \`${name}\` \\|[^|]+\\|[^|]+\\|[^|]+\\|$`, 'm'))
  }
  for (const named of namedIn(deployed())) expect(text).toContain(`| \`${named.split(' ')[1]}\` |`)
})

test('how far records come behind is told with how many of them', async () => {
  const functions = new Functions()
  const lines = await linesOf(async () => {
    await functions.send({ key: 'a', minute: 10 }, { key: 'a', minute: 10 }, { key: 'a', minute: 0 })
  })
  const measured = lines.flatMap((line) => metricsIn(line)?.get('event-lateness') ?? [])
  expect(measured.slice(0, 2)).toEqual([0, 0])
  expect(measured.at(-1)).toBe(600_000)
  expect(measured).toHaveLength(3)
})
