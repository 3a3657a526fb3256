import { planLines } from '../../../bin/cli/plan.ts'
import { operatorState, plan, Topology, text, valueState } from '../../../lib/index.ts'

const self = (line: string): string => line

test('each stage says its kind, what it reads, keeps and writes, and the names of its stream and table', () => {
  const app = new Topology('app')
  const out = app.sink<string>('out')
  const source = app.source('lines', text())
  const seen = operatorState({ initial: 0, add: (n, _: string) => n + 1 })
  source.to(out)
  source
    .keyBy('by-line', self)
    .process('last', { state: { last: valueState<string>(), seen }, step: (line) => [line] })
    .keyBy('by-end', (line) => line.slice(-1), { slots: 1 })
    .reduce('longest', (a, b) => (b.length > a.length ? b : a), { emit: 'per-batch' })
    .to(out)
  expect(planLines(plan(app), app.describe()).slice(2)).toEqual([
    '3 stages, one Lambda function each:',
    '  lines: feeding; feeds by-line; writes to out',
    '    keeps its progress in table app-lines-state',
    '  by-line: keyed, 64 slots; feeds by-end',
    '    reads stream app-by-line, written by lines',
    '    keeps in table app-by-line-state, per key: last.last (value)',
    '    keeps per slot: last.seen',
    '  by-end: keyed, 1 slot; writes to out',
    '    reads stream app-by-end, written by by-line',
    '    keeps in table app-by-end-state, per key: longest (reducing)',
  ])
})
