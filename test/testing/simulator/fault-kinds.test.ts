import { faultKinds } from '../../../lib/testing/simulator/fault-kinds.ts'
import { play } from './simulator-world.ts'

/** Most kinds are met within a few seeds; the rarest of them once in some dozens. */
const mostSeeds = 400

test('every kind of fault takes effect in some run', async () => {
  const notMet = new Set(faultKinds)
  for (let seed = 0; seed < mostSeeds && notMet.size > 0; seed++) {
    const { met } = await play(seed)
    for (const kind of notMet) if ((met.get(kind) ?? 0) > 0) notMet.delete(kind)
  }
  expect([...notMet]).toEqual([])
}, 300_000)

test('a kind is listed once', () => {
  expect(new Set(faultKinds).size).toBe(faultKinds.length)
})
