/** The loops that the benchmark measures Millrace against come to the same results. */
import { byHand, runByHand } from '../../bench/nexmark/by-hand.ts'
import { eventLines } from '../../bin/nexmark/delivery.ts'
import { queries } from '../../functions/nexmark/queries.ts'
import { runLines } from './run-lines.ts'

const lines = [...eventLines({ events: 6_000, rate: 200, seed: 21, disorderMs: 4_000 })]

it.each(Object.keys(queries))('%s by hand equals %s through Millrace', async (query) => {
  const rows: string[] = []
  const loop = byHand[query]?.((line) => void rows.push(line))
  if (loop === undefined) throw new Error(`there is no loop for ${query}`)
  runByHand(
    loop,
    lines.map((line) => Buffer.from(line)),
  )
  expect(rows.toSorted()).toEqual((await runLines(query, lines)).results)
})
