/**
 * Windows of every kind through the whole keyed runner: however the log is cut into batches and commits, delivered again from older
 * checkpoints, taken over by new containers and broken off at any port call, results and late records are those of one
 * batch in one container. What that one comes to is what the naive computation does.
 */
import fc from 'fast-check'
import { seeded } from '../../../bench/state/zipf.ts'
import {
  calendarDays,
  countWindow,
  type Format,
  hopping,
  json,
  milliseconds,
  session,
  sliding,
  Topology,
  tumbling,
  type WindowResult,
} from '../../../lib/index.ts'
import type { Windows } from '../../../lib/operators/keyed/window/window.ts'
import { encodeControl, encodeFrame } from '../../../lib/runtime/frames/frame-format.ts'
import { endOf, firstPosition, ownPosition } from '../../../lib/runtime/frames/position.ts'
import type { Runner } from '../../../lib/runtime/runner.ts'
import type { SinkHandle } from '../../../lib/topology/handles.ts'
import {
  type Arrival,
  aligned,
  idsBy,
  localDays,
  type Naive,
  naiveFixed,
  naiveSessions,
  naiveSliding,
} from '../../operators/keyed/window/naive-windows.ts'
import { StageWorld } from '../stage-world.ts'

interface Value {
  readonly key: string
  readonly id: number
}
type Ids = readonly number[]
type Emission = 'on-close' | 'final'

const graceMs = 4
const disorderMs = 3
const grace = { grace: milliseconds(graceMs) }
const dayMs = 86_400_000
/** 40 ms before a midnight in UTC: the times that are drawn go on over it. */
const originMs = 10 * dayMs - 40

const ids = idsBy(({ id }: Value) => id)

const kinds: readonly [name: string, windows: Windows, naive: ((all: readonly Arrival[]) => Naive) | undefined][] = [
  ['tumbling', tumbling(milliseconds(10), grace), (all) => naiveFixed(all, graceMs, aligned(10, 10))],
  [
    'hopping',
    hopping(milliseconds(12), { every: milliseconds(4), ...grace }),
    (all) => naiveFixed(all, graceMs, aligned(12, 4)),
  ],
  ['sliding', sliding(milliseconds(10), grace), (all) => naiveSliding(all, graceMs, 10)],
  ['session', session(milliseconds(7), grace), (all) => naiveSessions(all, graceMs, 7)],
  ['calendar days', calendarDays('UTC', grace), (all) => naiveFixed(all, graceMs, localDays('UTC'))],
  // Theirs depend on the order of arrival alone, which one batch and many have alike.
  ['count', countWindow(3), undefined],
]

function topologyOf(windows: Windows, emit: Emission) {
  const app = new Topology('cuts')
  const results = app.sink<WindowResult<string, Ids>>('results')
  // Nothing is late for a window that no time closes.
  const late = windows.kind === 'count' ? undefined : app.sink<Value>('late')
  const out = app
    .source('values', json() as Format<Value>)
    .keyBy('by-key', ({ key }) => key, { slots: 1 })
    .window(windows as never)
    .aggregate('w', ids as never, { emit } as never) as never as Record<'results' | 'late', { to(sink: unknown): void }>
  out.results.to(results)
  if (late !== undefined) out.late.to(late)
  return { app, results, late }
}

const lateOf = (world: StageWorld, late: SinkHandle<Value> | undefined) => (late ? world.memory.received(late) : [])

interface Event {
  readonly key: string
  readonly time: number
}
const upstream = { name: 'values', partition: 'p-0' }
const origin = { source: 'values', partition: 'p-0', position: '1', subPosition: 0, arrivalTimeMs: 0 }

/** Own marks as a source gives them: the largest time before, less the disorder. */
function arrivalsOf(events: readonly Event[]): readonly (Arrival & { readonly key: string })[] {
  let largestMs = Number.NEGATIVE_INFINITY
  return events.map(({ key, time }, id) => {
    const timeMs = originMs + time
    const limitMs = largestMs - disorderMs
    largestMs = Math.max(largestMs, timeMs)
    return { id, key, timeMs, limitMs }
  })
}

/** The log of the stage: what feeds it, frames of so many records each, and at last the end of all time. */
function appendAll(world: StageWorld, events: readonly Event[], sizes: readonly number[]): void {
  const tell = (markMs: number, state: 'open' | 'idle') => {
    const news = [{ upstream, state, markMs, lastSent: new Map() }]
    world.append(encodeControl({ kind: 'control', from: 'announcer', slot: 0, news } as never).bytes)
  }
  tell(Number.NEGATIVE_INFINITY, 'open')
  const all = arrivalsOf(events)
  for (let from = 0, n = 0; from < all.length; n++) {
    const part = all.slice(from, from + (sizes[n % sizes.length] as number))
    const records = part.map(({ id, key, timeMs, limitMs }) => ({
      ...{ side: 'by-key', key, eventTimeMs: timeMs, ownMarkMs: limitMs, origin, redrive: undefined },
      ...{ position: ownPosition(id + 1, 0), value: Buffer.from(JSON.stringify({ key, id })) },
      headers: id % 3 === 0 ? undefined : [{ name: 'id', value: Buffer.from(String(id)) }],
    }))
    const claims = [{ previous: from === 0 ? firstPosition : endOf(from), last: endOf(from + part.length) }]
    const markMs = part[0]?.limitMs as number
    world.append(encodeFrame({ kind: 'frame', upstream, slot: 0, schemaVersion: 1, markMs, claims, records }).bytes)
    from += part.length
  }
  tell(originMs + 100 * dayMs, 'open')
}

/** Cuts, older checkpoints, containers that come and go, and calls that fail or never end. */
async function throughFaults(world: StageWorld, seed: number): Promise<void> {
  const random = seeded(seed)
  const idle: Runner[] = []
  let faults = 12
  const gate = () => {
    const x = random()
    if (faults === 0 || x > 0.06) return undefined
    faults -= 1
    return x < 0.03 ? Promise.reject(new Error('the answer was lost')) : world.sleep()
  }
  world.before = gate
  world.after = gate
  for (let at = 0, attempts = 0; at < world.log.length; attempts++) {
    expect(attempts).toBeLessThan(500)
    const from = random() < 0.2 ? Math.floor(random() * (at + 1)) : at
    const to = Math.min(world.log.length, from + 1 + Math.floor(random() * 6))
    const options = { mostKeysPerCommit: 1 + Math.floor(random() * 3), warmKeys: random() < 0.7 ? 2 : 0 }
    const runner = (random() < 0.6 ? idle.pop() : undefined) ?? world.container(options)
    const run = world.run(runner, from, to).catch(() => from)
    const done = await Promise.race([run, asleep(world)])
    if (random() < 0.3) world.wake()
    if (done === undefined) continue
    idle.push(runner)
    at = Math.max(at, done)
  }
  world.before = () => undefined
  world.after = () => undefined
  world.wake()
  await asleep(world)
}

/** Some turns of the event loop: what has not ended by then sleeps. */
async function asleep(world: StageWorld): Promise<undefined> {
  for (let turns = 0, calls = -1; turns < 20; turns++) {
    if (calls !== world.calls.length) turns = 0
    calls = world.calls.length
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const events = fc.array(
  fc.record({ key: fc.constantFrom('a', 'a', 'b', 'c'), time: fc.integer({ min: 0, max: 90 }) }),
  { minLength: 1, maxLength: 30 },
)
const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 5 })

const nameOf = ({ key, window }: WindowResult<string, Ids>) => `${key} ${window.startMs}-${window.endMs}`

describe.each(kinds)('%s', (_, windows, naive) => {
  test.each<Emission>(['final', 'on-close'])(
    '%s',
    async (emit) => {
      await fc.assert(
        fc.asyncProperty(events, sizes, fc.integer({ min: 1, max: 1e6 }), async (list, frameSizes, seed) => {
          const one = topologyOf(windows, emit)
          const calm = new StageWorld(one.app, 'by-key')
          appendAll(calm, list, frameSizes)
          expect(await calm.run(calm.container())).toBe(calm.log.length)
          const results = calm.memory.received(one.results)
          const late = lateOf(calm, one.late)

          const other = topologyOf(windows, emit)
          const rough = new StageWorld(other.app, 'by-key')
          appendAll(rough, list, frameSizes)
          await throughFaults(rough, seed)
          const text = (all: readonly unknown[]) => all.map((value) => JSON.stringify(value)).sort()
          expect(text(rough.memory.received(other.results))).toEqual(text(results))
          expect(text(lateOf(rough, other.late))).toEqual(text(late))
          expect(rough.headers).toEqual(calm.headers)
          expect(rough.memory.deadLettered).toEqual([])
          if (naive === undefined) return

          const arrivals = arrivalsOf(list)
          const byKey = [...Map.groupBy(arrivals, ({ key }) => key)].map(([key, own]) => ({ key, ...naive(own) }))
          const expected = byKey.flatMap(({ key, windows: all }) =>
            [...all].map(([name, held]) => [`${key} ${name}`, held]),
          )
          const last = new Map<string, Ids>()
          for (const result of results) {
            if (result.isRetracted) last.delete(nameOf(result))
            else last.set(nameOf(result), result.value)
          }
          expect([...last].sort()).toEqual(expected.sort())
          if (emit === 'final') expect(results).toHaveLength(last.size)
          expect(late.map(({ id }) => id).sort((a, b) => a - b)).toEqual(
            byKey.flatMap((own) => own.late).sort((a, b) => a - b),
          )
        }),
        { numRuns: 40 },
      )
    },
    120_000,
  )
})
