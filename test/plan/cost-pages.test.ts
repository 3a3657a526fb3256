/** The figures of docs/when-not.md and docs/cli.md are those that `millrace plan --cost` says. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { costLines } from '../../bin/cli/plan-cost.ts'
import { bookingsApp } from '../../functions/bookings/topology.ts'
import { costOf, flinkIsCheaperFrom } from '../../lib/plan/cost.ts'
import { plan } from '../../lib/plan/plan.ts'

const page = (name: string) => readFileSync(join(__dirname, '../../docs', name), 'utf8')
const bookings = plan(bookingsApp)
const dollars = (amount: number) => `$${Math.round(amount).toLocaleString('en-US')}`

test('docs/when-not.md compares with Managed Flink as the command does, and names the same point', () => {
  const load = { collapse: 5, stateGb: 1 }
  const text = page('when-not.md')
  const rows = [...text.matchAll(/^\| (none|[\d,]+) \| (\$[\d,]+) \| (\$[\d,]+) \|$/gm)].map((row) => row.slice(1))
  expect(rows).toHaveLength(5)
  const computed = rows.map(([rate = '']) => {
    const { atRate, flink } = costOf(bookings, {
      ...load,
      rate: rate === 'none' ? 0 : Number(rate.replaceAll(',', '')),
    })
    return [rate, dollars(atRate), dollars(flink)]
  })
  expect(rows).toEqual(computed)
  const [, point] = /\*\*From about (\d+) records a second/.exec(text) ?? []
  expect(Number(point)).toBe(Number(flinkIsCheaperFrom(bookings, load)?.toPrecision(2)))
})

test('docs/cli.md shows what the command says', () => {
  const shown = /--cost --rate 100 --collapse 3\n(dollars a month[\s\S]*?)\n```/.exec(page('cli.md'))?.[1]?.split('\n')
  expect(shown).toEqual(costLines(bookings, { rate: 100, collapse: 3, stateGb: 1 }).slice(0, -1))
})
