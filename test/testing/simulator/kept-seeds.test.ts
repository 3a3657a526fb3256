import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { play } from './simulator-world.ts'

const kept: { readonly seeds: readonly { readonly seed: number; readonly found: string }[] } = JSON.parse(
  readFileSync(join(__dirname, 'seeds.json'), 'utf8'),
)

describe('kept seeds', () => {
  test.each(kept.seeds)(
    'seed $seed, which found: $found',
    async ({ seed }) => {
      expect((await play(seed)).findings).toEqual([])
    },
    60_000,
  )

  test('each is kept once, with what it found', () => {
    const seeds = kept.seeds.map(({ seed }) => seed)
    expect(new Set(seeds).size).toBe(seeds.length)
    for (const { found } of kept.seeds) expect(found.length).toBeGreaterThan(20)
  })
})
