import { RunDisplay, type RunView, renderBlock, renderLine } from '../../../lib/local/display/run-display.ts'

const view: RunView = {
  sent: 61_200,
  total: 113_533,
  taken: 45_300,
  repeats: 0,
  recordsPerSecond: 6_120.4,
  outputs: [
    { name: 'clean', records: 45_261 },
    { name: 'rejected', records: 19 },
    { name: 'dead letters', records: 10 },
  ],
  shards: [
    {
      shardId: 'shardId-000000000000',
      position: '49680682610355638121225268499480405250565258559499534338',
      done: 12_000,
      waiting: 1_200,
      lagMs: 340,
      state: 'running',
    },
    {
      shardId: 'shardId-000000000001',
      position: undefined,
      done: 0,
      waiting: 0,
      lagMs: 0,
      state: 'blocked: the stream is gone',
    },
  ],
  troubles: ['orders: 3 records were given up and reported nowhere'],
}

class Output {
  readonly isTTY: boolean
  readonly columns = 60
  text = ''

  constructor(isTTY: boolean) {
    this.isTTY = isTTY
  }

  write(text: string): void {
    this.text += text
  }
}

test('shards of several stages are told apart by the stage, in the block and in the line', () => {
  const shards = view.shards.map((shard, index) => ({ ...shard, stage: ['orders', 'by-customer'][index] ?? '' }))
  const rows = renderBlock({ ...view, shards }).filter((line) => line.includes('shardId'))
  expect(rows).toEqual([
    expect.stringMatching(/^orders shardId-000000000000 /),
    expect.stringMatching(/^by-customer shardId-000000000001 /),
    'by-customer shardId-000000000001 blocked: the stream is gone',
  ])
  expect(renderLine({ ...view, shards }, 0)).toContain('shards: orders 0 at …9499534338 lag 0.3 s; by-customer 1 at')
})

test('the live block shows progress, counts, rate and each shard', () => {
  expect(renderBlock(view)).toEqual([
    'sent  ███████████████░░░░░░░░░░░░░  53 %   61,200 of 113,533 records',
    'in 45,300   behind 15,900   out 45,290   6,120 records/s now',
    'clean 45,261   rejected 19   dead letters 10',
    'shard                 position     done this run  read, not done    lag',
    'shardId-000000000000  …9499534338         12,000           1,200  0.3 s',
    'shardId-000000000001  -                        0               0  0.0 s  blocked',
    'shardId-000000000001 blocked: the stream is gone',
    'orders: 3 records were given up and reported nowhere',
  ])
})

test('a long reason is folded between words, and shards with the same one share it', () => {
  const state = `retrying: ${'the table is gone, '.repeat(8)}so nothing can be read`
  const shards = [0, 1, 2].flatMap(() => view.shards.slice(1).map((shard) => ({ ...shard, state })))
  expect(renderBlock({ ...view, shards, troubles: [] }).slice(4)).toEqual([
    ...Array(3).fill('shardId-000000000001  -                     0               0  0.0 s  retrying'),
    '3 shards retrying: the table is gone, the table is gone, the table is gone, the table is gone, the',
    '  table is gone, the table is gone, the table is gone, the table is gone, so nothing can be read',
  ])
})

test('the line says the same, with its time in UTC', () => {
  expect(renderLine(view, Date.UTC(2026, 0, 1, 12, 0, 5))).toBe(
    '2026-01-01T12:00:05Z | sent 61,200 of 113,533 (53 %) | in 45,300, behind 15,900, out 45,290 (clean 45,261, rejected 19, dead letters 10) | 6,120 records/s now | shards: 0 at …9499534338 lag 0.3 s; 1 at - lag 0.0 s blocked: the stream is gone | orders: 3 records were given up and reported nowhere',
  )
})

test('outputs that came more than once are told, on a terminal and elsewhere', () => {
  const repeated = { ...view, repeats: 1_500 }
  expect(renderBlock(repeated)[1]).toBe('in 45,300   behind 15,900   out 45,290   1,500 repeated   6,120 records/s now')
  expect(renderLine(repeated, 0)).toContain('dead letters 10), 1,500 repeated | 6,120 records/s now |')
})

test('a line before the first shard is known says nothing of shards', () => {
  expect(renderLine({ ...view, shards: [], troubles: [] }, 0)).toMatch(/\| 6,120 records\/s now$/)
})

test('a terminal is painted over in place, and no line is wider than it', () => {
  const output = new Output(true)
  let nowMs = 0
  const display = new RunDisplay(output, () => nowMs)
  display.show(() => view)
  nowMs = 50
  display.show(() => view)
  expect(output.text).not.toContain('\u001b')
  nowMs = 1_000
  display.show(() => view)
  const [first = '', second = ''] = output.text.split('\u001b[8A\u001b[0J')
  expect(second).toBe(first)
  expect(Math.max(...first.split('\n').map((line) => line.length))).toBe(59)
})

test('what is said stays above the block', () => {
  const output = new Output(true)
  const display = new RunDisplay(output, () => 0)
  display.show(() => view)
  display.say('Stopping')
  expect(output.text.endsWith('\u001b[8A\u001b[0JStopping\n')).toBe(true)
})

test('a block that is kept is not painted over', () => {
  const output = new Output(true)
  const display = new RunDisplay(output, () => 0)
  display.show(() => view)
  display.keep()
  display.say('Report')
  expect(output.text).not.toContain('\u001b')
})

test('without a terminal there is a line each second and no control character', () => {
  const output = new Output(false)
  let nowMs = 0
  const display = new RunDisplay(output, () => nowMs)
  for (; nowMs < 3_000; nowMs += 100) display.show(() => view)
  display.show(() => view, 'now')
  expect(output.text.trimEnd().split('\n')).toHaveLength(4)
  expect(output.text).not.toContain('\u001b')
})
