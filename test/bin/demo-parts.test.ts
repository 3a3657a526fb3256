import { EventEmitter } from 'node:events'
import { meets } from '../../bench/figures.ts'
import { figureLines } from '../../bin/demos/demo.ts'
import { readFlags } from '../../bin/demos/flags.ts'
import { listenForKeys } from '../../bin/demos/keys.ts'
import { figuresOf, mostAtOnce, type RunRecord, type SentRide } from '../../bin/demos/partitions/assessment.ts'
import { Kills, timesOf } from '../../bin/demos/partitions/kills.ts'
import { RideTable } from '../../bin/demos/partitions/ride-table.ts'
import { killLine, partitionsRenderer } from '../../bin/demos/partitions/view.ts'
import { Rates } from '../../bin/demos/rates.ts'
import type { LocalInvocation } from '../../lib/local/run/stage.ts'

const output = (shard: string, position: number, arrivalMs: number, content = '') => {
  const ride = { identity: `rides/${shard}/${position}/0/0`, shard, position: String(position), content }
  return { data: Buffer.from(JSON.stringify(ride)), arrivalMs }
}
const sent = (shardId: string, position: number): SentRide => ({ shardId, position: String(position), isKept: true })
const invocation = (shardId: string, startedAtMs: number, firstPosition: number, outcome = 'answered') =>
  ({ shardId, workerId: 'w2', startedAtMs, firstPosition: String(firstPosition), outcome }) as LocalInvocation

/** Two shards; w1 held `a` and is killed at 1,000 ms, when record 1 of `a` is saved. */
function killed(): Kills {
  const kills = new Kills()
  kills.begin('w1', 1_000, new Map([['a', '1']]))
  kills.takeEvent({ kind: 'exited', workerId: 'w1', atMs: 1_010, orphans: new Map([['a', 'w2']]) })
  return kills
}

describe('a kill', () => {
  test('is timed from the signal over its detection to the first record of the slowest orphan', () => {
    const kills = killed()
    const [kill] = kills.all
    const arrivals = new Map([['a', [990, 1_005, 1_300]]])
    expect(kill && timesOf(kill, arrivals)).toEqual({
      detectionMs: 10,
      takeOverMs: undefined,
      firstRecordMs: undefined,
    })
    kills.takeInvocation(invocation('b', 1_015, 7), () => new Map())
    kills.takeInvocation(invocation('a', 1_020, 2, 'function-error'), () => new Map())
    kills.takeInvocation(invocation('a', 1_060, 2), () => new Map([['a', '1']]))
    kills.takeInvocation(invocation('a', 1_400, 3), () => new Map([['a', '2']]))
    expect(kill && timesOf(kill, arrivals)).toEqual({ detectionMs: 10, takeOverMs: 50, firstRecordMs: 300 })
    expect(kills.areSettled(arrivals)).toBe(true)
    expect(kills.areSettled(new Map())).toBe(false)
  })

  test('had an invocation in flight when one of that worker ends unanswered with it', () => {
    const ends = (workerId: string, endedAtMs: number, outcome: string) => {
      const kills = killed()
      kills.takeInvocation({ ...invocation('a', 990, 2, outcome), workerId, endedAtMs }, () => new Map())
      return kills.all[0]?.wasInFlight
    }
    expect(ends('w1', 1_010, 'function-error')).toBe(true)
    expect(ends('w1', 1_000, 'answered')).toBe(false)
    expect(ends('w1', 995, 'function-error')).toBe(false)
    expect(ends('w2', 1_010, 'function-error')).toBe(false)
  })

  test('of a worker that is not being killed is nobody’s', () => {
    const kills = new Kills()
    kills.takeEvent({ kind: 'exited', workerId: 'w1', atMs: 5, orphans: new Map() })
    expect(kills.all).toEqual([])
  })
})

describe('the figures of S1', () => {
  const run = (changes: Partial<RunRecord> = {}): RunRecord => {
    const table = new RideTable()
    table.take([output('a', 1, 900), output('a', 2, 1_100)])
    const kills = killed()
    kills.takeInvocation(invocation('a', 1_060, 2), () => new Map([['a', '1']]))
    const whole = {
      shards: 2,
      workers: 2,
      sent: [sent('a', 1), sent('a', 2)],
      table,
      kills: kills.all,
      invocations: [],
    }
    return { ...whole, ...changes }
  }
  const figure = (record: RunRecord, name: string) => figuresOf(record).find((one) => one.name === name)?.value

  test('are all right for a run in which nothing went wrong', () => {
    const names = ['lost', 'in the table without reason', 'checkpointed before the output was there']
    expect(names.map((name) => figure(run(), name))).toEqual([0, 0, 0])
    expect(figure(run(), 'resumed at the last checkpoint')).toBe(1)
  })

  test('count a lost record, one that nobody sent, and a repeat of other content', () => {
    expect(figure(run({ sent: [sent('a', 1), sent('a', 2), sent('a', 3)] }), 'lost')).toBe(1)
    expect(figure(run({ sent: [sent('a', 1)] }), 'in the table without reason')).toBe(1)
    const table = new RideTable()
    table.take([output('a', 1, 900), output('a', 2, 950), output('a', 1, 990), output('a', 2, 995, 'other')])
    expect(figure(run({ table }), 'duplicates absorbed')).toBe(2)
    expect(figure(run({ table }), 'duplicates with other content')).toBe(1)
  })

  test('count a checkpoint that was ahead of the output, and one that was not gone on from', () => {
    const table = new RideTable()
    table.take([output('a', 1, 1_001), output('a', 2, 1_100)])
    expect(figure(run({ table }), 'checkpointed before the output was there')).toBe(1)
    const kills = killed()
    kills.takeInvocation(invocation('a', 1_060, 3), () => new Map([['a', '1']]))
    expect(figure(run({ kills: kills.all }), 'resumed at the last checkpoint')).toBe(0)
  })

  test('demand exactly min(shards, workers) invocations at once: fewer are a miss, too', () => {
    const met = (count: number) => {
      const invocations = Array.from({ length: count }, () => ({ startedAtMs: 0, endedAtMs: 5 }))
      const parallelism = figuresOf(run({ shards: 2, workers: 3, invocations }))[2]
      return parallelism && meets(parallelism)
    }
    expect([1, 2, 3].map(met)).toEqual([false, true, false])
  })

  test('a take-over that never came misses every bound', () => {
    expect(figure(run({ kills: killed().all }), 'SIGKILL to first record, slowest orphan')).toBe(Infinity)
  })
})

test('invocations that follow each other are not at once', () => {
  const during = (startedAtMs: number, endedAtMs: number) => ({ startedAtMs, endedAtMs })
  expect(mostAtOnce([during(0, 5), during(5, 9), during(9, 12)])).toBe(1)
  expect(mostAtOnce([during(0, 6), during(5, 9), during(2, 12)])).toBe(3)
  expect(mostAtOnce([])).toBe(0)
})

test('the live block of S1 shows who holds what, and the line for pipes says the same', () => {
  const shard = (number: number) => `shardId-00000000000${number}`
  const shards = [0, 1].map((number) => ({
    ...{ shardId: shard(number), holder: 'w1', recordsPerSecond: 20, lagMs: 300 },
    state: number === 0 ? 'running' : 'retrying: the environment ended',
  }))
  const worker = { id: 'w1', pid: 42, state: 'busy', holds: [shard(1), shard(0)], recordsPerSecond: 40 }
  const kill = {
    workerId: 'w0',
    orphans: [shard(1)],
    wasInFlight: true,
    detectionMs: 9,
    takeOverMs: 80,
    firstRecordMs: undefined,
  }
  const view = {
    sent: 90,
    outputs: 72,
    duplicates: 1,
    recordsPerSecond: 40,
    workers: [worker],
    shards,
    kills: [kill],
    keys: 'k',
  }
  expect(partitionsRenderer.block(view)).toEqual([
    'sent 90   out 72 (1 duplicates absorbed)   40/s   parallelism min(2 shards, 1 workers) = 1',
    'worker  process  state  records  holds shards',
    'w1           42  busy      40/s  0 1',
    expect.stringMatching(/^shard {2}holder {2}records +lag/),
    expect.stringMatching(/^ +0 {2}w1 +20\/s {2}0\.3 s +1 {2}w1 +20\/s {2}0\.3 s {2}retrying: the environment ended/),
    killLine(kill),
    'k',
  ])
  expect(killLine(kill)).toContain(
    'held shards 1, with an invocation in flight: detected after 9 ms, taken over 80 ms later, first record of each within …',
  )
  expect(killLine({ ...kill, wasInFlight: false })).toContain('held shards 1, none was in flight: detected')
  expect(killLine({ ...kill, detectionMs: undefined })).toContain('held shards 1: detected after …')
  expect(partitionsRenderer.line(view, 0)).toBe(
    '1970-01-01T00:00:00Z | sent 90, out 72, 1 duplicates absorbed | 40/s | lag 0.3 s | w1 holds 0 1 | 1 killed',
  )
})

test('keys come one by one from a terminal in raw mode, and nothing is touched without one', () => {
  const modes: boolean[] = []
  const terminal = Object.assign(new EventEmitter(), {
    ...{ isTTY: true, setRawMode: (mode: boolean) => modes.push(mode) },
    ...{ setEncoding: () => undefined, resume: () => undefined, pause: () => undefined },
  })
  const keys: string[] = []
  const stop = listenForKeys(terminal, (key) => keys.push(key))
  terminal.emit('data', 'kq')
  stop()
  terminal.emit('data', 'k')
  expect([keys, modes]).toEqual([
    ['k', 'q'],
    [true, false],
  ])
  listenForKeys(Object.assign(terminal, { isTTY: false }), (key) => keys.push(key))
  terminal.emit('data', 'x')
  expect(keys).toHaveLength(2)
})

test('rates are over the last three seconds', () => {
  let atMs = 0
  const rates = new Rates(() => atMs)
  expect(rates.sample(new Map([['a', 0]])).get('a')).toBe(0)
  atMs = 1_000
  expect(rates.sample(new Map([['a', 50]])).get('a')).toBe(50)
  atMs = 5_000
  expect(rates.sample(new Map([['a', 450]])).get('a')).toBe(100)
})

test('figures are shown with their goal and whether it is met', () => {
  const lines = figureLines([
    { name: 'lost', value: 1, unit: 'records', goal: 0, better: 'lower' },
    { name: 'ratio', value: 2.5, unit: 'times', goal: 2.4 },
    { name: 'rate', value: 1_234.5, unit: 'records/s' },
    { name: 'at once', value: 3, unit: '', goal: 3, better: 'exactly' },
    { name: 'take-over', value: Number.POSITIVE_INFINITY, unit: 'ms', goal: 300, better: 'lower' },
  ])
  expect(lines.slice(1)).toEqual([
    expect.stringMatching(/^lost +1 {2}records +at most 0 +MISSED$/),
    expect.stringMatching(/^ratio +2\.5 {2}times +at least 2\.4 +met$/),
    expect.stringMatching(/^rate +1,235 {2}records\/s$/),
    expect.stringMatching(/^at once +3 +exactly 3 +met$/),
    expect.stringMatching(/^take-over +never {2}ms +at most 300 +MISSED$/),
  ])
})

describe('flags', () => {
  const read = (...args: readonly string[]) =>
    readFlags('npm run demo', 'About.', { seconds: { least: 1, most: 9, value: 3, help: 'how long' } }, args)

  test('have defaults, and a help text that lists them', () => {
    expect(read()).toEqual({ numbers: { seconds: 3 }, json: undefined, help: undefined })
    expect(read('--seconds', '5', '--json', 'f').numbers.seconds).toBe(5)
    expect(read('--help').help).toMatch(
      /^About\.\n\nnpm run demo -- \[flags\]\n {2}--seconds N +how long\n {2}--json FILE/,
    )
  })

  test.each([
    [['--seconds', '0'], '--seconds 0 is not a whole number from 1 to 9.'],
    [['--seconds', '2.5'], '--seconds 2.5 is not a whole number from 1 to 9.'],
    [['--minutes', '5'], "Unknown option '--minutes'."],
  ])('%j is refused in one line', (args, message) => {
    expect(() => read(...args)).toThrow(`${message} \`npm run demo -- --help\` lists the flags.`)
  })
})
