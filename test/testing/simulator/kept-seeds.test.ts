import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { play } from './simulator-world.ts'

interface KeptSeed {
  readonly seed: number
  /** Where it was played. @default "kinesis" */
  readonly service?: string
  readonly found: string
}

const kept: { readonly seeds: readonly KeptSeed[] } = JSON.parse(readFileSync(join(__dirname, 'seeds.json'), 'utf8'))

describe('kept seeds', () => {
  test.each(kept.seeds)(
    'seed $seed, which found: $found',
    async ({ seed, service }) => {
      expect((await play(seed, { service: service === 'kafka' ? 'kafka' : 'kinesis' })).findings).toEqual([])
    },
    60_000,
  )

  test('each is kept once, with what it found', () => {
    const seeds = kept.seeds.map(({ seed }) => seed)
    expect(new Set(seeds).size).toBe(seeds.length)
    for (const { found } of kept.seeds) expect(found.length).toBeGreaterThan(20)
  })
})
