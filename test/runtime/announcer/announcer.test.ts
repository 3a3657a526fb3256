/** The invariants of announcer.ts, by number. */
import { endOf } from '../../../lib/runtime/frames/position.ts'
import { upstreamKey } from '../../../lib/runtime/frames/upstream-memory.ts'
import type { KeyedProgress, SourceProgress } from '../../../lib/runtime/progress/progress.ts'
import { AnnouncerWorld, disorderMs, graceMs, slots, startMs, trips } from './announcer-world.ts'

const dueAt = (timeMs: number): Pick<KeyedProgress, 'earliest'> => ({
  earliest: { event: new Map([[0, timeMs]]), processing: new Map() },
})

/** A source partition's progress: its largest event time, when that arrived, and how many of its records are done. */
const progressAt = (largestEventTimeMs: number, arrivedAtMs: number, completed: number): Partial<SourceProgress> => ({
  largestEventTimeMs,
  largestArrivedAtMs: arrivedAtMs,
  completed: completed === 0 ? undefined : String(completed),
  number: completed,
})

const sentTo = (fed: string, positions: Readonly<Record<number, number>>): Pick<SourceProgress, 'sent'> => ({
  sent: new Map([[fed, new Map(Object.entries(positions).map(([slot, n]) => [Number(slot), endOf(n - 1)]))]]),
})

/** `trips` has one partition p-0 with one record, done: event time 500, arrived at 900. `by-driver` has one partition s-0. */
async function oneOfEach(options: Parameters<typeof trips>[0] = {}): Promise<AnnouncerWorld> {
  const world = new AnnouncerWorld(trips(options))
  world.stream('trips').add('p-0', { records: 1 })
  world.stream('by-driver').add('s-0')
  await world.source('trips', 'p-0', progressAt(500, 900, 1))
  return world
}

/** The stage knows p-0 with its mark, and waits for what is due at that time. */
async function knownAndDue(dueMs: number, options: Parameters<typeof trips>[0] = {}): Promise<AnnouncerWorld> {
  const world = await oneOfEach(options)
  await world.round()
  await world.read('by-driver')
  await world.keyed('by-driver', 's-0', dueAt(dueMs))
  return world
}

describe('the first set (2)', () => {
  test('comes whole, with closed ones and those without a mark, to every open partition of the stage', async () => {
    const world = new AnnouncerWorld(trips())
    const source = world.stream('trips')
    source.add('p-0', { records: 2, isClosed: true })
    source.add('p-1', { parents: ['p-0'] })
    source.add('p-2')
    await world.source('trips', 'p-0', { ...progressAt(500, 900, 2), ...sentTo('by-driver', { 0: 2, 3: 1 }) })
    const keyed = world.stream('by-driver')
    keyed.add('s-0', { isClosed: true })
    keyed.add('s-1', { parents: ['s-0'], range: [0, 2] })
    keyed.add('s-2', { parents: ['s-0'], range: [2, 4] })
    const set = ['open trips/p-0 490', 'closed trips/p-0 490 {0:2 3:1}', 'open trips/p-1 490', 'open trips/p-2 no mark']
    expect(await world.round()).toEqual([
      ...set.map((news) => `by-driver/s-1: ${news}`),
      ...set.map((news) => `by-driver/s-2: ${news}`),
    ])
  })

  test('moves the watermark, which no frame and no stage has moved before it', async () => {
    const world = await oneOfEach()
    const upstream = { name: 'trips', partition: 'p-0' }
    const upstreams = new Map([
      [upstreamKey(upstream), { upstream, state: 'open' as const, markMs: 490, closedAtMs: 0 }],
    ])
    await world.keyed('by-driver', 's-0', { upstreams })
    expect(await world.round()).toEqual(['by-driver/s-0: open trips/p-0 490'])
    await world.read('by-driver')
    expect(await world.progress('by-driver', 's-0')).toMatchObject({ known: true, watermarkMs: 490 })
  })

  test('is said again until progress shows it, and then no more (1)', async () => {
    const world = await oneOfEach()
    const set = ['by-driver/s-0: open trips/p-0 490']
    expect(await world.round()).toEqual(set)
    world.lose()
    expect(await world.round()).toEqual(set)
    expect(await world.round()).toEqual(set)
    await world.read('by-driver')
    expect(await world.round()).toEqual([])
  })

  test('a partition of the stage that holds no slot is told nothing', async () => {
    const world = await oneOfEach()
    world.stream('by-driver').add('s-none', { range: [2, 2] })
    expect(await world.round()).toEqual(['by-driver/s-0: open trips/p-0 490'])
  })
})

describe('children and closes (2, 3)', () => {
  async function split(): Promise<AnnouncerWorld> {
    const world = await oneOfEach()
    await world.round()
    await world.read('by-driver')
    const source = world.stream('trips')
    source.change('p-0', { isClosed: true, records: 3 })
    source.add('p-1', { parents: ['p-0'] })
    source.add('p-2', { parents: ['p-0'] })
    return world
  }
  const children = ['by-driver/s-0: open trips/p-1 490', 'by-driver/s-0: open trips/p-2 490']

  test('children are opened with the mark of their parent, which is not closed while records of it are left', async () => {
    const world = await split()
    expect(await world.round()).toEqual(children)
    await world.read('by-driver')
    expect(await world.round()).toEqual([])
  })

  test('the close comes with them in one frame when the parent is drained, and names what was sent last', async () => {
    const world = await split()
    await world.source('trips', 'p-0', { ...progressAt(600, 950, 3), ...sentTo('by-driver', { 1: 3 }) })
    expect(await world.round()).toEqual([
      'by-driver/s-0: closed trips/p-0 590 {1:3}',
      'by-driver/s-0: open trips/p-1 590',
      'by-driver/s-0: open trips/p-2 590',
    ])
    await world.read('by-driver')
    const { upstreams } = (await world.progress('by-driver', 's-0')) as KeyedProgress
    expect([...upstreams.values()].map(({ state }) => state).sort()).toEqual(['closed', 'open', 'open'])
    expect(await world.round()).toEqual([])
  })

  test('a child of two has the least mark of those that had a record', async () => {
    const world = new AnnouncerWorld(trips())
    const source = world.stream('trips')
    source.add('a', { records: 1, isClosed: true })
    source.add('b', { records: 1, isClosed: true })
    source.add('none', { isClosed: true })
    source.add('ab', { parents: ['a', 'b'] })
    source.add('a-none', { parents: ['a', 'none'] })
    await world.source('trips', 'a', progressAt(700, 900, 1))
    await world.source('trips', 'b', progressAt(600, 900, 1))
    world.stream('by-driver').add('s-0')
    const said = await world.round()
    expect(said).toContain('by-driver/s-0: open trips/ab 590')
    expect(said).toContain('by-driver/s-0: open trips/a-none 690')
  })

  test('while a parent without a mark has records to come, the child has none: they may be the older ones', async () => {
    const world = new AnnouncerWorld(trips())
    const source = world.stream('trips')
    source.add('a', { records: 1, isClosed: true })
    source.add('b', { records: 1, isClosed: true })
    source.add('ab', { parents: ['a', 'b'] })
    source.add('below', { parents: ['ab'] })
    source.change('ab', { isClosed: true })
    await world.source('trips', 'a', progressAt(700, 900, 1))
    world.stream('by-driver').add('s-0')
    const said = await world.round()
    expect(said).toContain('by-driver/s-0: open trips/ab no mark')
    expect(said).toContain('by-driver/s-0: open trips/below no mark')
  })

  test('a closed partition that never held a record is over when those that it came from are', async () => {
    const world = await split()
    const source = world.stream('trips')
    source.change('p-1', { isClosed: true })
    source.add('p-3', { parents: ['p-1'] })
    expect((await world.round()).filter((line) => line.includes('closed'))).toEqual([])
    await world.source('trips', 'p-0', progressAt(600, 950, 3))
    expect((await world.round()).filter((line) => line.includes('closed'))).toEqual([
      'by-driver/s-0: closed trips/p-0 590',
      'by-driver/s-0: closed trips/p-1 590',
    ])
  })

  test('a drained partition that nobody asks for any more costs no call', async () => {
    const world = await split()
    await world.source('trips', 'p-0', progressAt(600, 950, 3))
    await world.round()
    await world.read('by-driver')
    world.stream('trips').asked.length = 0
    await world.round()
    expect(world.stream('trips').asked).toEqual([])
  })

  test('each question about a partition is asked once a round, however many partitions the stage has', async () => {
    const world = await split()
    world.stream('by-driver').change('s-0', { isClosed: true })
    for (const n of [1, 2]) world.stream('by-driver').add(`s-${n}`, { parents: ['s-0'], range: [2 * (n - 1), 2 * n] })
    await world.round()
    expect(world.stream('trips').asked).toEqual(['drained p-0'])
  })
})

describe('partitions that their stream no longer knows (3, 6)', () => {
  test('are closed, with what is left of their progress', async () => {
    const world = await oneOfEach()
    await world.round()
    await world.read('by-driver')
    await world.source('trips', 'p-0', { ...progressAt(550, 900, 1), ...sentTo('by-driver', { 2: 1 }) })
    world.stream('trips').partitions.delete('p-0')
    expect(await world.round()).toEqual(['by-driver/s-0: closed trips/p-0 540 {2:1}'])
    await world.read('by-driver')
    expect(await world.round()).toEqual([])
  })

  test('one that is missing in the list alone is not taken for gone', async () => {
    const world = await oneOfEach()
    await world.round()
    await world.read('by-driver')
    Object.assign(world.stream('trips').lineage, { list: async () => [] })
    expect(await world.round()).toEqual([])
  })

  test('one that began between the listing and the look at it is not taken for gone', async () => {
    const world = await oneOfEach({ below: true })
    world.stream('by-city').add('c-0')
    for (let n = 0; n < 3; n++) {
      await world.round()
      await world.read('by-driver')
      await world.read('by-city')
    }
    // The stage in the middle is split right when it is listed first, and its child has written at once.
    const keyed = world.stream('by-driver')
    const upstream = { name: 'by-driver', partition: 's-1' }
    const known = (await world.progress('by-city', 'c-0')) as KeyedProgress
    const status = { upstream, state: 'open' as const, markMs: 0, closedAtMs: 0 }
    await world.keyed('by-city', 'c-0', { upstreams: new Map([...known.upstreams, [upstreamKey(upstream), status]]) })
    const { list } = keyed.lineage
    Object.assign(keyed.lineage, {
      list: async (signal: AbortSignal) => {
        const before = await list(signal)
        if (!keyed.partitions.has('s-1')) keyed.add('s-1', { parents: ['s-0'] })
        return before
      },
    })
    expect((await world.round()).filter((line) => line.includes('closed'))).toEqual([])
  })

  test('what feeds a stage is listed after the stage was read, through all stages', async () => {
    const world = await oneOfEach({ below: true })
    world.stream('by-city').add('c-0')
    const order: string[] = []
    for (const [stage, stream] of world.streams) stream.beforeList = () => void order.push(`list ${stage}`)
    world.beforeRead = (stage) => void order.push(`read ${stage}`)
    await world.round()
    expect(order.indexOf('read by-city')).toBeLessThan(order.indexOf('list by-driver'))
    expect(order.indexOf('read by-driver')).toBeLessThan(order.indexOf('list trips'))
  })
})

describe('idle marks (4, 5)', () => {
  test('are the largest event time and the silence since it arrived, less the disorder', async () => {
    const world = await knownAndDue(500)
    world.clock.advance(200)
    const markMs = 500 + (startMs + 200 - 900) - disorderMs
    expect(await world.round()).toEqual([`by-driver/s-0: open trips/p-0 ${markMs}`])
    await world.read('by-driver')
    expect(await world.progress('by-driver', 's-0')).toMatchObject({ watermarkMs: markMs })
    expect(await world.round()).toEqual([])
    world.clock.advance(1)
    expect(await world.round()).toEqual([`by-driver/s-0: open trips/p-0 ${markMs + 1}`])
  })

  test('come only where they reach what is due: until then nothing is said, and no stage wakes', async () => {
    const world = await knownAndDue(700)
    expect(await world.round()).toEqual([])
    world.clock.advance(109)
    expect(await world.round()).toEqual([])
    world.clock.advance(1)
    expect(await world.round()).toEqual(['by-driver/s-0: open trips/p-0 700'])
  })

  test('nothing is said, and no source is asked, while nothing is due', async () => {
    const world = await oneOfEach()
    await world.round()
    await world.read('by-driver')
    world.stream('trips').asked.length = 0
    world.clock.advance(1_000_000)
    expect(await world.round()).toEqual([])
    expect(world.stream('trips').asked).toEqual([])
  })

  test('a partition that lags or is blocked gets none, whatever the others get', async () => {
    const world = await knownAndDue(500)
    const source = world.stream('trips')
    source.add('p-1', { records: 2 })
    await world.source('trips', 'p-1', progressAt(480, 900, 1))
    world.clock.advance(200)
    expect(await world.round()).toEqual(['by-driver/s-0: open trips/p-0 790', 'by-driver/s-0: open trips/p-1 470'])
    await world.read('by-driver')
    world.clock.advance(200)
    expect(await world.round()).toEqual(['by-driver/s-0: open trips/p-0 990'])
    source.change('p-1', { records: 1 })
    expect(await world.round()).toContain(`by-driver/s-0: open trips/p-1 ${480 + 500 - disorderMs}`)
  })

  test('a child that has not begun gets one from its parent, once that is drained', async () => {
    const world = await knownAndDue(500)
    const source = world.stream('trips')
    source.change('p-0', { isClosed: true, records: 2 })
    source.add('p-1', { parents: ['p-0'] })
    world.clock.advance(200)
    expect(await world.round()).toEqual(['by-driver/s-0: open trips/p-1 490'])
    source.change('p-0', { records: 1 })
    expect(await world.round()).toContain('by-driver/s-0: open trips/p-1 790')
  })

  test('a partition that never had a record is idle without a mark, and said so once', async () => {
    const world = await knownAndDue(500)
    world.stream('trips').add('p-1')
    const said = await world.round()
    expect(said).toContain('by-driver/s-0: open trips/p-1 no mark')
    expect(said).toContain('by-driver/s-0: idle trips/p-1 no mark')
    await world.read('by-driver')
    expect((await world.progress('by-driver', 's-0'))?.watermarkMs).toBe(590)
    expect((await world.round()).filter((line) => line.includes('p-1'))).toEqual([])
  })

  test('a source is asked once a round, however many partitions the stage has', async () => {
    const world = await knownAndDue(500)
    const keyed = world.stream('by-driver')
    keyed.change('s-0', { isClosed: true })
    for (const n of [1, 2]) keyed.add(`s-${n}`, { parents: ['s-0'], range: [2 * (n - 1), 2 * n] })
    world.stream('trips').asked.length = 0
    expect(await world.round()).toHaveLength(2)
    expect(world.stream('trips').asked).toEqual(['caught-up p-0'])
  })

  test('what arrives while the round runs is not counted as silence', async () => {
    const world = await knownAndDue(500)
    world.clock.advance(200)
    world.stream('trips').beforeList = () => world.clock.advance(5_000)
    expect(await world.round()).toEqual(['by-driver/s-0: open trips/p-0 790'])
  })

  test('a mark that was stored and never told is said where it reaches what is due, though the partition lags', async () => {
    const world = await knownAndDue(540)
    world.stream('trips').change('p-0', { records: 9 })
    await world.source('trips', 'p-0', progressAt(540, 950, 2))
    expect(await world.round()).toEqual([])
    await world.source('trips', 'p-0', progressAt(550, 950, 3))
    expect(await world.round()).toEqual(['by-driver/s-0: open trips/p-0 540'])
  })

  test('what a closed partition of the stage waited for is its children’s: when they have done it, nothing is due', async () => {
    const world = await knownAndDue(500)
    const keyed = world.stream('by-driver')
    keyed.change('s-0', { isClosed: true })
    keyed.add('s-1', { parents: ['s-0'] })
    world.clock.advance(200)
    expect(await world.round()).toEqual(['by-driver/s-1: open trips/p-0 790'])
    const { upstreams } = (await world.progress('by-driver', 's-0')) as KeyedProgress
    await world.keyed('by-driver', 's-1', { known: true, upstreams })
    expect(await world.round()).toEqual([])
  })

  test('a caller that measures silence itself is asked; one that asks for no silence gets none', async () => {
    const world = await knownAndDue(500)
    expect(await world.round({ idleMs: undefined })).toEqual([])
    expect(await world.round({ idleMs: (arrivedAtMs) => arrivedAtMs })).toEqual([
      `by-driver/s-0: open trips/p-0 ${500 + 900 - disorderMs}`,
    ])
  })
})

describe('stages in a chain', () => {
  /** Both stages know what feeds them; only the last one waits. */
  async function chain(dueMs: number): Promise<AnnouncerWorld> {
    const world = await oneOfEach({ below: true })
    world.stream('by-city').add('c-0')
    await world.round()
    await world.read('by-driver')
    await world.round()
    await world.read('by-city')
    await world.keyed('by-city', 'c-0', dueAt(dueMs))
    return world
  }

  test('an upstream of the second stage is a partition of the first, with its watermark less the grace of final windows', async () => {
    const world = await oneOfEach({ below: true })
    world.stream('by-city').add('c-0')
    expect(await world.round()).toEqual([
      'by-driver/s-0: open trips/p-0 490',
      'by-city/c-0: open by-driver/s-0 no mark',
    ])
    await world.read('by-driver')
    expect(await world.round()).toEqual([`by-city/c-0: open by-driver/s-0 ${490 - graceMs}`])
  })

  test('an idle mark goes to the first stage for what waits in the second, and its mark further where nobody told it', async () => {
    const world = await chain(600)
    world.clock.advance(100)
    expect(await world.round()).toEqual(['by-driver/s-0: open trips/p-0 690'])
    await world.read('by-driver')
    expect(await world.round()).toEqual([`by-city/c-0: open by-driver/s-0 ${690 - graceMs}`])
    await world.read('by-city')
    expect((await world.progress('by-city', 'c-0'))?.watermarkMs).toBe(690 - graceMs)
    expect(await world.round()).toEqual([])
  })

  test('a partition of the first stage that was split is closed for the second when it is drained', async () => {
    const world = await chain(10_000)
    const keyed = world.stream('by-driver')
    keyed.change('s-0', { isClosed: true, records: 5 })
    keyed.add('s-1', { parents: ['s-0'], range: [0, 2] })
    keyed.add('s-2', { parents: ['s-0'], range: [2, slots] })
    await world.keyed('by-driver', 's-0', { completed: '4' })
    const opened = [
      `by-city/c-0: open by-driver/s-1 ${490 - graceMs}`,
      `by-city/c-0: open by-driver/s-2 ${490 - graceMs}`,
    ]
    expect(await world.round()).toEqual(opened)
    await world.keyed('by-driver', 's-0', { completed: '5', ...sentTo('by-city', { 1: 8 }) })
    expect(await world.round()).toEqual([`by-city/c-0: closed by-driver/s-0 ${490 - graceMs} {1:8}`, ...opened])
  })

  test('a partition that was merged has the mark of what it follows and left something due, until its first number', async () => {
    const world = await chain(10_000)
    const keyed = world.stream('by-driver')
    keyed.change('s-0', { isClosed: true, records: 5, range: [0, 2] })
    keyed.add('s-1', { isClosed: true, records: 5, range: [2, slots] })
    keyed.add('s-2', { parents: ['s-0', 's-1'] })
    await world.keyed('by-driver', 's-0', { completed: '5', watermarkMs: 300, ...dueAt(400) })
    await world.keyed('by-driver', 's-1', { completed: '5', watermarkMs: 600, known: true })
    const said = await world.round({ idleMs: undefined })
    expect(said).toContain(`by-city/c-0: open by-driver/s-2 ${300 - graceMs}`)
    expect(said).not.toContain(`by-city/c-0: open by-driver/s-2 ${600 - graceMs}`)
    // It is woken, as what is due would otherwise wait for the next record.
    expect(said.filter((one) => one.startsWith('by-driver/s-2'))).toEqual(['by-driver/s-2: tick'])
  })

  test('a stage whose stream takes nothing keeps no other from being told; the round says so at its end', async () => {
    const world = await oneOfEach({ below: true })
    world.stream('by-city').add('c-0')
    world.broken.add('by-driver')
    await expect(world.round()).rejects.toThrow('the stream of by-driver takes nothing')
    await world.read('by-city')
    expect(await world.progress('by-city', 'c-0')).toMatchObject({ known: true })
  })
})

describe('upstreams of a stage that feeds this one no longer (7)', () => {
  test('hold nothing back, and are not closed', async () => {
    const world = await knownAndDue(500)
    const { upstreams } = (await world.progress('by-driver', 's-0')) as KeyedProgress
    const upstream = { name: 'old-trips', partition: 'p-0' }
    const status = { upstream, state: 'open' as const, markMs: 100, closedAtMs: 0 }
    await world.keyed('by-driver', 's-0', { upstreams: new Map([...upstreams, [upstreamKey(upstream), status]]) })
    world.clock.advance(200)
    expect(await world.round()).toEqual(['by-driver/s-0: open trips/p-0 790', 'by-driver/s-0: open old-trips/p-0 790'])
    await world.read('by-driver')
    expect(await world.progress('by-driver', 's-0')).toMatchObject({ watermarkMs: 790 })
  })
})

describe('ticks (8)', () => {
  test('come to a partition with a processing-time timer that is due, without news, until it has fired', async () => {
    const world = await oneOfEach()
    await world.round()
    await world.read('by-driver')
    const earliest = { event: new Map(), processing: new Map([[3, startMs + 50]]) }
    await world.keyed('by-driver', 's-0', { earliest })
    expect(await world.round()).toEqual([])
    world.clock.advance(50)
    expect(await world.round()).toEqual(['by-driver/s-0: tick'])
    expect(await world.round()).toEqual(['by-driver/s-0: tick'])
    await world.read('by-driver')
    expect(await world.progress('by-driver', 's-0')).toMatchObject({ processingMs: startMs + 50 })
    await world.keyed('by-driver', 's-0', { earliest: { event: new Map(), processing: new Map() } })
    expect(await world.round()).toEqual([])
  })
})

test('progress of another number of slots is refused before anything is said', async () => {
  const world = await oneOfEach()
  await world.keyed('by-driver', 's-0', { slots: 8 })
  await expect(world.round()).rejects.toMatchObject({
    code: 'slots-changed',
    message: expect.stringContaining('stage "by-driver" has 4 slots'),
  })
})
