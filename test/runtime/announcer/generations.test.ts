/** What the announcer says of stages that were reset (9). */
import { decodeFrame } from '../../../lib/runtime/frames/frame-format.ts'
import { AnnouncerWorld, trips } from './announcer-world.ts'

function worldOf() {
  const world = new AnnouncerWorld(trips())
  world.stream('trips').add('p-0', { records: 5 })
  world.stream('by-driver').add('s-0')
  return world
}

test('upstreams are named with their generation, and the partition of that generation learns of them', async () => {
  const world = worldOf()
  await world.reset('trips')
  await world.reset('by-driver')
  await world.source('trips', 'p-0', { completed: '3', number: 3, largestEventTimeMs: 500, generation: 2 })
  await world.keyed('by-driver', 's-0', { completed: '1', number: 1, generation: 2 })
  const names: string[] = []
  const { frames, ...ports } = world.ports()
  await world.round({
    ports: {
      ...ports,
      frames: (stage) => ({
        publish: async (encoded, until) => {
          for (const { bytes } of encoded) {
            const frame = decodeFrame(bytes)
            if (frame.kind === 'control') names.push(...frame.news.map(({ upstream }) => upstream.name))
          }
          return frames?.(stage)?.publish(encoded, until)
        },
      }),
    },
  })
  expect(names).toEqual(['trips@2'])
  await world.read('by-driver')
  expect(await world.progress('by-driver', 's-0')).toMatchObject({ known: true, watermarkMs: 490 })
})

test('nothing is said while stages are of several generations, or held', async () => {
  const world = worldOf()
  await world.source('trips', 'p-0', { completed: '3', number: 3, largestEventTimeMs: 500 })
  await world.keyed('by-driver', 's-0', { completed: '1', number: 1 })
  expect(await world.round()).toEqual(['by-driver/s-0: open trips/p-0 490'])
  await world.reset('trips', true)
  expect(await world.round()).toEqual([])
  await world.source('trips', 'p-0', { completed: undefined, number: 0, generation: 2 })
  await world.reset('trips')
  // The stage that is fed is of the first generation still.
  expect(await world.round()).toEqual([])
  await world.reset('by-driver')
  expect(await world.round()).toEqual([])
  await world.keyed('by-driver', 's-0', { completed: '1', number: 1, generation: 2 })
  expect(await world.round()).toEqual(['by-driver/s-0: open trips/p-0 no mark'])
})
