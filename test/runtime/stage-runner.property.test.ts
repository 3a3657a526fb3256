/**
 * Random topologies under random failures, run again and again as Lambda would until nothing goes back, against an oracle
 * that evaluates each record alone. A failing seed is printed by fast-check.
 */
import fc from 'fast-check'
import { minutes } from '../../lib/core/duration.ts'
import { RetryableError, TerminalError } from '../../lib/core/errors.ts'
import { text } from '../../lib/core/format.ts'
import type { SourceRecord } from '../../lib/core/record.ts'
import { otherwise } from '../../lib/operators/branch.ts'
import { lookup, staticTable } from '../../lib/operators/enrich/table.ts'
import type { DeadLetter } from '../../lib/runtime/dead-letter.ts'
import { delivered, type Outcome, type Output, type Sink } from '../../lib/runtime/sink.ts'
import type { Stream } from '../../lib/topology/stream.ts'
import { Topology } from '../../lib/topology/topology.ts'
import { recordsOf, runnerOf } from './runner-world.ts'

/** A step of the chain; `at` makes two of a kind differ. */
type Piece = 'map' | 'filter' | 'flatMap' | 'branch' | 'static' | 'lookup'
/** What befalls a record at the failing step: always, or at the first attempts only. */
type Fault = 'none' | 'always' | 'once' | 'terminal' | 'retryable-once' | 'half-way-once'
/** How one call of a sink ends. */
type Weather = 'fine' | 'rejects' | 'throws' | 'short' | 'refuses-some'

interface Scenario {
  readonly pieces: readonly Piece[]
  readonly faults: readonly Fault[]
  readonly partitions: readonly number[]
  readonly weather: readonly Weather[]
  readonly maxPendingOutputs: number
  /** Where in the chain the failing step stands. */
  readonly failAt: number
}

const scenarios: fc.Arbitrary<Scenario> = fc.record({
  pieces: fc.array(fc.constantFrom<Piece>('map', 'filter', 'flatMap', 'branch', 'static', 'lookup'), { maxLength: 5 }),
  faults: fc.array(
    fc.oneof(
      { weight: 5, arbitrary: fc.constant<Fault>('none') },
      { weight: 4, arbitrary: fc.constantFrom<Fault>('always', 'once', 'terminal', 'retryable-once', 'half-way-once') },
    ),
    { minLength: 1, maxLength: 12 },
  ),
  partitions: fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 3 }),
  weather: fc.array(fc.constantFrom<Weather>('fine', 'rejects', 'throws', 'short', 'refuses-some'), { maxLength: 8 }),
  maxPendingOutputs: fc.constantFrom(1, 3, 1_000),
  failAt: fc.nat(5),
})

/** A step that fails as its record's fault says, and counts the attempts per record. */
function failingStep(faultOf: (line: string) => Fault) {
  const attempts = new Map<string, number>()
  const failed = (line: string, id: string, when: 'before' | 'half-way'): void => {
    const fault = faultOf(id)
    const attempt = (attempts.get(id) ?? 0) + (when === 'before' ? 1 : 0)
    attempts.set(id, attempt)
    if (when === 'half-way') {
      if (fault === 'half-way-once' && attempt === 1) throw new Error(`half-way at ${line}`)
      return
    }
    if (fault === 'always') throw undefined
    if (fault === 'terminal') throw new TerminalError(`terminal at ${line}`)
    if (fault === 'once' && attempt === 1) throw Object.freeze(new Error(`once at ${line}`))
    if (fault === 'retryable-once' && attempt === 1) throw new RetryableError(`later at ${line}`)
  }
  return function* (line: string, record: { readonly partition: string; readonly position: string }) {
    const id = `${record.partition}/${record.position}`
    failed(line, id, 'before')
    yield line
    failed(line, id, 'half-way')
  }
}

function extend(stream: Stream<string>, piece: Piece, at: number): Stream<string> {
  const row = (key: string): number => key.length + at
  const tableRows = (keys: readonly string[]) => new Map(keys.map((key) => [key, row(key)]))
  switch (piece) {
    case 'map':
      return stream.map((line) => `${line}m${at}`)
    case 'filter':
      return stream.filter((line) => line.length % 5 !== at)
    case 'flatMap':
      return stream.flatMap((line) => [line, `${line}f${at}`].slice(line.length % 3 === 0 ? 1 : 0))
    case 'branch': {
      const { a, b } = stream.branch({ a: (line) => line.length % 2 === 0, b: otherwise })
      return a.map((line) => `${line}a`).merge(b)
    }
    case 'static':
      return stream.enrich({
        from: staticTable(`t${at}`, () => tableRows(['0', '1', '2'])),
        key: (line) => String(line.length % 4),
        join: (line, found) => `${line}s${found}`,
      })
    case 'lookup':
      return stream.enrich({
        from: lookup(`t${at}`, {
          load: async (keys) => tableRows(keys),
          ttl: minutes(1),
          answers: 'may-change',
          maxEntries: 2,
        }),
        key: (line) => (line.length % 7 === 0 ? undefined : String(line.length % 4)),
        join: (line, found) => `${line}l${found}`,
      })
  }
}

/** What the pieces make of one value, evaluated without any runtime. */
function expected(line: string, pieces: readonly Piece[], at = 0): string[] {
  const [piece, ...rest] = pieces
  if (piece === undefined) return [line]
  const next = (value: string) => expected(value, rest, at + 1)
  const { length } = line
  switch (piece) {
    case 'map':
      return next(`${line}m${at}`)
    case 'filter':
      return length % 5 === at ? [] : next(line)
    case 'flatMap':
      return [...(length % 3 === 0 ? [] : next(line)), ...next(`${line}f${at}`)]
    case 'branch':
      return next(length % 2 === 0 ? `${line}a` : line)
    case 'static':
      return next(`${line}s${length % 4 === 3 ? undefined : 1 + at}`)
    case 'lookup':
      return next(`${line}l${length % 7 === 0 ? undefined : 1 + at}`)
  }
}

interface Stored {
  readonly partition: string
  readonly id: string
  readonly value: unknown
}

/** A sink in bad weather that stores what it calls delivered, each identity once, and keeps its order per partition. */
function weatheredSink(weather: Weather[], stored: Map<string, Stored>): Sink {
  return {
    prepare: ({ value, record, index }: Output): Stored => ({
      partition: record.partition,
      id: `${record.partition}/${record.position}/${index}`,
      value,
    }),
    deliver: async (items) => {
      const today = weather.shift() ?? 'fine'
      if (today === 'rejects') return Promise.reject(null)
      if (today === 'throws') throw new Error('down')
      const returned = new Set<string>()
      const outcomes = (items as readonly Stored[]).map((item, i): Outcome => {
        if (today === 'refuses-some' && i % 3 === 2) returned.add(item.partition)
        if (returned.has(item.partition)) return { status: 'retry', error: new Error('throttled') }
        if (!stored.has(item.id)) stored.set(item.id, item)
        return delivered
      })
      return today === 'short' ? outcomes.slice(1) : outcomes
    },
  }
}

test('every record is stored exactly once or is a dead letter, in order, and nothing is called done before', async () => {
  await fc.assert(
    fc.asyncProperty(scenarios, async (scenario) => {
      const pieces = scenario.pieces
      const batch: Record<string, SourceRecord[]> = {}
      for (const [p, count] of scenario.partitions.entries()) {
        batch[`p${p}`] = recordsOf(
          Array.from({ length: count }, (_, i) => `${p}.${'x'.repeat(i)}`),
          `p${p}`,
        )
      }
      const all = Object.values(batch).flat()
      const faults = new Map(
        all.map((record, i) => [
          `${record.partition}/${record.position}`,
          scenario.faults[i % scenario.faults.length] ?? 'none',
        ]),
      )
      const faultOf = (id: string): Fault => faults.get(id) ?? 'none'

      const app = new Topology('app')
      const failAt = Math.min(scenario.failAt, pieces.length)
      let stream: Stream<string> = app.source('lines', text())
      for (const [at, piece] of pieces.entries()) {
        if (at === failAt) stream = stream.flatMap(failingStep(faultOf))
        stream = extend(stream, piece, at)
      }
      if (failAt === pieces.length) stream = stream.flatMap(failingStep(faultOf))
      stream.to(app.sink<string>('main'))
      stream.map((line) => `${line}!`).to(app.sink<string>('copy'))

      const stores = [new Map<string, Stored>(), new Map<string, Stored>(), new Map<string, Stored>()] as const
      const weather = [scenario.weather.slice(), scenario.weather.toReversed(), scenario.weather.slice(1)] as const
      const world = runnerOf(app, {
        sinks: { main: weatheredSink(weather[0], stores[0]), copy: weatheredSink(weather[1], stores[1]) },
        deadLetters: weatheredSink(weather[2], stores[2]) as Sink<DeadLetter>,
        maxPendingOutputs: scenario.maxPendingOutputs,
      })

      const oracle = (record: SourceRecord): string[] | 'dead letter' => {
        const fault = faultOf(`${record.partition}/${record.position}`)
        const line = (record.payload as Buffer).toString()
        // Only a record that reaches the failing step can fail there.
        const reaches = expected(line, pieces.slice(0, failAt)).length > 0
        return reaches && (fault === 'always' || fault === 'terminal') ? 'dead letter' : expected(line, pieces)
      }
      const assertDone = (record: SourceRecord): void => {
        const at = `${record.partition}/${record.position}`
        const outputs = oracle(record)
        if (outputs === 'dead letter') {
          expect(stores[2].has(`${at}/0`)).toBe(true)
          return
        }
        for (const [i, output] of outputs.entries()) {
          expect(stores[0].get(`${at}/${i}`)?.value).toBe(output)
          expect(stores[1].get(`${at}/${i}`)?.value).toBe(`${output}!`)
        }
      }

      let rounds = 0
      for (let pending = batch; Object.keys(pending).length > 0; rounds++) {
        expect(rounds).toBeLessThan(60)
        const answer = await world.run(pending)
        const next: Record<string, SourceRecord[]> = {}
        for (const [partition, records] of Object.entries(pending)) {
          const from = answer[partition]
          for (const record of records.slice(0, from ?? records.length)) assertDone(record)
          if (from !== undefined) next[partition] = records.slice(from)
        }
        pending = next
      }

      // Nothing more than the oracle says, and per partition in its order.
      for (const [s, suffix] of [
        [0, ''],
        [1, '!'],
      ] as const) {
        for (const [partition, records] of Object.entries(batch)) {
          const values = [...stores[s].values()]
            .filter((item) => item.partition === partition)
            .map(({ value }) => value)
          const outputs = records.map(oracle).flatMap((made) => (made === 'dead letter' ? [] : made))
          expect(values).toEqual(outputs.map((output) => `${output}${suffix}`))
        }
      }
      const dead = [...stores[2].values()].map(({ id }) => id)
      const expectedDead = all
        .filter((record) => oracle(record) === 'dead letter')
        .map((r) => `${r.partition}/${r.position}/0`)
      expect(dead.toSorted()).toEqual(expectedDead.toSorted())
    }),
    { numRuns: 400 },
  )
})
