/** Whatever happens to a source, and in whatever order, the announcer tells nothing that is not so, and in the end all of it. */
import fc from 'fast-check'
import { upstreamKey } from '../../../lib/runtime/frames/upstream-memory.ts'
import type { KeyedProgress } from '../../../lib/runtime/progress/progress.ts'
import { AnnouncerWorld, disorderMs, trips } from './announcer-world.ts'

/** A source partition with its event times; how many of them its stage has done. */
interface Partition {
  readonly times: number[]
  done: number
}

/** What a source does, as the records arrive one after the other and a stage reads them; parents before children. */
class Source {
  readonly partitions = new Map<string, Partition>()
  readonly world = new AnnouncerWorld(trips())
  #made = 0

  constructor() {
    this.add([])
    this.world.stream('by-driver').add('s-0')
  }

  add(parents: readonly string[]): void {
    const name = `p-${this.#made++}`
    this.partitions.set(name, { times: [], done: 0 })
    this.world.stream('trips').add(name, { parents })
    for (const parent of parents) this.world.stream('trips').change(parent, { isClosed: true })
  }

  get open(): readonly string[] {
    return [...this.world.stream('trips').partitions].filter(([, { isClosed }]) => !isClosed).map(([name]) => name)
  }

  append(name: string, time: number): void {
    const { times } = this.partitions.get(name) as Partition
    times.push(time)
    this.world.stream('trips').change(name, { records: times.length })
  }

  isOver(name: string): boolean {
    const { isClosed = false, parents = [] } = this.world.stream('trips').partitions.get(name) ?? {}
    const { times, done } = this.partitions.get(name) as Partition
    return isClosed && done === times.length && (times.length > 0 || parents.every((parent) => this.isOver(parent)))
  }

  /** The largest event time, once all that comes before is read: what the partition begins with, and its own. */
  #largest(name: string, through: number): number {
    const { times } = this.partitions.get(name) as Partition
    const { parents = [] } = this.world.stream('trips').partitions.get(name) ?? {}
    const before = parents
      .map((parent) => this.#largest(parent, this.partitions.get(parent)?.times.length ?? 0))
      .filter((time) => time > Number.NEGATIVE_INFINITY)
    const begin = before.length === 0 ? Number.NEGATIVE_INFINITY : Math.min(...before)
    return Math.max(begin, ...times.slice(0, through))
  }

  /** The least own mark that any record has which is not done yet, of this partition or of one that it came from. */
  leastMarkToCome(name: string): number {
    const { times, done } = this.partitions.get(name) as Partition
    return this.#largest(name, Math.min(done, times.length)) - disorderMs
  }

  async step(name: string): Promise<void> {
    const partition = this.partitions.get(name) as Partition
    const { parents = [] } = this.world.stream('trips').partitions.get(name) ?? {}
    if (partition.done === partition.times.length || !parents.every((parent) => this.isOver(parent))) return
    partition.done++
    await this.world.source('trips', name, {
      largestEventTimeMs: this.#largest(name, partition.done),
      largestArrivedAtMs: this.world.clock.nowMs(),
      completed: String(partition.done),
      number: partition.done,
    })
  }
}

type Action =
  | { readonly kind: 'append' | 'step' | 'split'; readonly which: number; readonly time: number }
  | { readonly kind: 'merge' | 'announce' | 'read' | 'lose'; readonly which?: undefined }

const anyAction: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('append' as const, 'append' as const, 'step' as const, 'step' as const, 'split' as const),
      which: fc.nat({ max: 9 }),
      time: fc.integer({ min: 100, max: 900 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('merge' as const, 'announce' as const, 'read' as const, 'lose' as const),
    }),
  },
)

async function act(source: Source, action: Action): Promise<void> {
  const { world, open } = source
  if (action.which === undefined) {
    if (action.kind === 'announce') await world.round()
    else if (action.kind === 'read') await world.read('by-driver')
    else if (action.kind === 'lose') world.lose()
    else if (open.length > 1) source.add(open.slice(0, 2))
    return
  }
  const { kind, which, time } = action
  const name = open[which % open.length] as string
  if (kind === 'append') source.append(name, time)
  else if (kind === 'step') await source.step([...source.partitions.keys()][which % source.partitions.size] as string)
  else if (source.partitions.size < 10) for (const _ of [0, 1]) source.add([name])
}

const statusOf = (progress: KeyedProgress | undefined, name: string) =>
  progress?.upstreams.get(upstreamKey({ name: 'trips', partition: name }))

test('no mark is ahead of a record that is still to come, and no partition is closed before its last one', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyAction, { maxLength: 60 }), async (actions) => {
      const source = new Source()
      for (const action of actions) {
        await act(source, action)
        const progress = await source.world.progress('by-driver', 's-0')
        for (const name of source.partitions.keys()) {
          const status = statusOf(progress, name)
          if (status === undefined) continue
          expect(status.markMs).toBeLessThanOrEqual(source.leastMarkToCome(name))
          if (status.state === 'closed') expect(source.isOver(name)).toBe(true)
        }
        // A closed parent whose children are not known would let the watermark run ahead of them.
        for (const [name, { parents }] of source.world.stream('trips').partitions) {
          if (parents.some((parent) => statusOf(progress, parent)?.state === 'closed')) {
            expect(statusOf(progress, name)).toBeDefined()
          }
        }
      }
    }),
    { numRuns: 300 },
  )
})

test('whatever was lost, one round and a reader bring a stage up to all that is so', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyAction, { maxLength: 60 }), async (actions) => {
      const source = new Source()
      for (const action of actions) await act(source, action)
      source.world.lose()
      await source.world.round()
      await source.world.read('by-driver')
      const progress = await source.world.progress('by-driver', 's-0')
      expect(progress?.known).toBe(true)
      for (const name of source.partitions.keys()) {
        expect([name, statusOf(progress, name)?.state]).toEqual([name, source.isOver(name) ? 'closed' : 'open'])
      }
      expect(await source.world.round()).toEqual([])
    }),
    { numRuns: 300 },
  )
})
