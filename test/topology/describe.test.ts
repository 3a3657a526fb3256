import { z } from 'zod'
import { text } from '../../lib/core/format.ts'
import { otherwise } from '../../lib/operators/branch.ts'
import { staticTable } from '../../lib/operators/enrich/table.ts'
import { epochMs } from '../../lib/time/event-time.ts'
import { Topology } from '../../lib/topology/topology.ts'

function flights(): Topology {
  const app = new Topology('flights')
  const flown = app.source('flown', z.object({ at: z.number() }), { eventTime: epochMs((f: { at: number }) => f.at) })
  const planned = app.source('planned', text())
  const clean = app.sink<unknown>('clean')
  const odd = app.sink<unknown>('odd')
  const airports = staticTable<number>('airports', () => new Map())
  const arms = flown.branch({ good: (f) => f.at > 0, bad: otherwise })
  arms.bad.to(odd)
  const enriched = arms.good.enrich<number, unknown>({ from: airports, key: () => 'a', join: (f) => f })
  enriched.merge(planned.map((line): unknown => line)).to(clean)
  return app
}

test('as text: a tree per source, what follows a merge told once', () => {
  expect(flights().describe()).toBe(
    `topology "flights"
  source "flown" (json, validated by zod, event time epochMs)
    branch
      arm "good"
        enrich from "airports"
          merge
            sink "clean"
      arm "bad"
        sink "odd"
  source "planned" (text, event time on arrival)
    map
      merge (as above)`,
  )
})

test('as Mermaid: every step once, every way once, every name quoted', () => {
  expect(flights().describe('mermaid')).toBe(
    `flowchart LR
  n0(["source 'flown'"])
  n1(["source 'planned'"])
  n2{"branch"}
  n6["enrich from 'airports'"]
  n7["map"]
  n8["merge"]
  sink-clean[("sink 'clean'")]
  sink-odd[("sink 'odd'")]
  n0 --> n2
  n1 --> n7
  n2 -->|"good"| n6
  n2 -->|"bad"| sink-odd
  n6 --> n8
  n7 --> n8
  n8 --> sink-clean`,
  )
})

test('names that Mermaid would take for its own syntax stay inside quotes, on one line', () => {
  const app = new Topology('odd')
  const rates = staticTable<number>('rates [eur] "x"\n--> n9', () => new Map())
  const arms = app.source('s', text()).branch({ 'a|b (c) "d"\n]': () => true, end: otherwise })
  const out = app.sink<string>('end')
  arms['a|b (c) "d"\n]'].enrich<number, string>({ from: rates, key: () => 'k', join: (value) => value }).to(out)
  arms.end.to(out)
  expect(app.describe('mermaid').split('\n').slice(1)).toEqual([
    `  n0(["source 's'"])`,
    '  n1{"branch"}',
    `  n4["enrich from 'rates [eur] 'x' --> n9'"]`,
    `  sink-end[("sink 'end'")]`,
    '  n0 --> n1',
    `  n1 -->|"a|b (c) 'd' ]"| n4`,
    '  n1 -->|"end"| sink-end',
    '  n4 --> sink-end',
  ])
})
