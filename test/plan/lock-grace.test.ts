import { count, countWindow, minutes, plan, type SlicedWindows, Topology, text, tumbling } from '../../lib/index.ts'
import { compareLock, type KeyedStageLock, lockOf, sameLock, type TopologyLock } from '../../lib/plan/lock.ts'
import { lockText, parseLock } from '../../lib/plan/lock-file.ts'

const self = (line: string): string => line

describe('compareLock, over the grace of windows', () => {
  const release = (windows: SlicedWindows, emit: 'final' | 'on-close' = 'final') => {
    const app = new Topology('app')
    const sink = app.sink<unknown>('out')
    const { results, late } = app
      .source('lines', text())
      .keyBy('by-line', self)
      .window(windows)
      .aggregate('per-line', count(), { emit })
    results.to(sink)
    late.to(sink)
    return lockOf(plan(app))
  }
  const of = (grace: number) => release(tumbling(minutes(5), { grace: minutes(grace) }))

  test('one that is longer opens what was settled: it is named, with what comes of it', () => {
    expect(compareLock(of(1), of(2))).toEqual([
      {
        name: 'per-line',
        message:
          'window "per-line" of stage "by-line" has a grace of 120000 ms instead of 60000 ms: what was settled by the shorter one gets a second result that holds late records alone, where one comes within the longer. Where that does not matter, `millrace lock --accept per-line`.',
      },
    ])
  })

  test('one that is shorter is to be drained for, as the deployment before has the longer one', () => {
    expect(compareLock(of(2), of(1))).toEqual([
      {
        name: 'per-line',
        message:
          'window "per-line" of stage "by-line" has a grace of 60000 ms instead of 120000 ms: while both deployments run, the one before may take a late record for a window that this one has settled, which gets a second result that holds late records alone. Drain first: `millrace drain`, then `millrace lock --accept per-line`.',
      },
    ])
  })

  test('another emission passes, as open windows say themselves what was put out of them', () => {
    const windows = tumbling(minutes(5), { grace: minutes(1) })
    expect(compareLock(release(windows, 'final'), release(windows, 'on-close'))).toEqual([])
    expect(sameLock(of(1), of(2))).toBe(false)
  })

  test('count windows have none, and a lock of a release that recorded none refuses nothing', () => {
    const app = new Topology('app')
    app
      .source('lines', text())
      .keyBy('by-line', self)
      .window(countWindow(2))
      .aggregate('per-line', count(), { emit: 'final' })
      .results.to(app.sink<unknown>('out'))
    const graceOf = (lock: TopologyLock) => (lock.stages['by-line'] as KeyedStageLock).operators['per-line']?.graceMs
    expect(graceOf(lockOf(plan(app)))).toBeUndefined()
    expect(graceOf(of(1))).toBe(60_000)
    const before = JSON.parse(JSON.stringify(of(1), (name, value) => (name === 'graceMs' ? undefined : value)))
    expect(compareLock(before, of(2))).toEqual([])
    expect(sameLock(before, of(1))).toBe(false)
    const lock = lockText(new Map([['app', { file: 'app.ts', ...of(1) }]]))
    expect(() => parseLock(lock.replace('60000', '"1 min"'), 'my.lock.json')).toThrow('my.lock.json is not what')
  })
})
