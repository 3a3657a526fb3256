/** From one file to another: reading in pieces, and the commands. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventLines } from '../../bin/nexmark/delivery.ts'
import { linesInPieces } from '../../bin/nexmark/line-reader.ts'
import { runFile } from '../../bin/nexmark/run-file.ts'
import { q5 } from '../../functions/nexmark/q5/topology.ts'
import { q7 } from '../../functions/nexmark/q7/topology.ts'
import { q12 } from '../../functions/nexmark/q12/topology.ts'
import { ConfigurationError } from '../../lib/index.ts'
import { runLines } from './run-lines.ts'

const directory = mkdtempSync(join(tmpdir(), 'millrace-nexmark-'))
const at = (name: string): string => join(directory, name)
afterAll(() => rmSync(directory, { recursive: true }))

const textOf = (lines: Iterable<readonly Buffer[]>): readonly string[] =>
  [...lines].flat().map((line) => line.toString())

it('reads the lines of a file that is longer than a piece, whole', () => {
  const lines = [...eventLines({ events: 6_000, seed: 9 })]
  writeFileSync(at('long'), `${lines.join('\n')}\n`)
  expect([...linesInPieces(at('long'))].length).toBeGreaterThan(1)
  expect(textOf(linesInPieces(at('long')))).toEqual(lines)
})

it('reads a last line without an end, and passes over blank ones', () => {
  writeFileSync(at('odd'), '\n{"a":1}\n\n \t\r\n{"b":2}\r\n{"c":3}')
  expect(textOf(linesInPieces(at('odd')))).toEqual(['{"a":1}', '{"b":2}\r', '{"c":3}'])
  writeFileSync(at('blank'), '\n\r\n  ')
  expect(textOf(linesInPieces(at('blank')))).toEqual([])
  writeFileSync(at('empty'), '')
  expect(textOf(linesInPieces(at('empty')))).toEqual([])
})

it('writes to a file what a run in memory gives', async () => {
  const lines = [...eventLines({ events: 6_000, seed: 4, disorderMs: 4_000 })]
  writeFileSync(at('events'), lines.join('\n'))
  const told: number[] = []
  const run = await runFile(q12, { from: at('events'), to: at('results') }, (events) => void told.push(events))
  const { results } = await runLines('q12', lines)
  expect(readFileSync(at('results'), 'utf8').trimEnd().split('\n').toSorted()).toEqual(results)
  expect(run).toMatchObject({ events: 6_000, results: results.length, late: 0, refused: 0, isSorted: false })
  expect(run.disorderMs).toBeGreaterThan(3_000)
  expect(run.disorderMs).toBeLessThan(4_000)
  expect(told.at(-1)).toBe(6_000)
})

it.each([
  [q5, 5],
  [q7, 1],
])('holds few windows at a time where events are further apart than any window is long', async (query, windows) => {
  const rest = { bidder: 1, price: 100, channel: 'channel-7', url: 'https://host/a/b/c', extra: 'x' }
  const bids = Array.from({ length: 3_000 }, (_, i) => ({ type: 'bid', eventTime: i * 11_000, auction: 1, ...rest }))
  writeFileSync(at('sparse'), bids.map((bid) => JSON.stringify(bid)).join('\n'))
  const run = await runFile(query, { from: at('sparse'), to: at('results') })
  expect(run).toMatchObject({ results: 3_000 * windows, refused: 0, late: 0 })
})

it('sorts events that are out of order by more than windows are kept open for', async () => {
  // At one event a second, the last event trails the first one by 50 minutes.
  const inOrder = [...eventLines({ events: 3_000, rate: 1, seed: 8 })]
  writeFileSync(at('backwards'), `no event\n${inOrder.toReversed().join('\n')}`)
  const run = await runFile(q12, { from: at('backwards'), to: at('results') })
  const { results } = await runLines('q12', inOrder)
  expect(readFileSync(at('results'), 'utf8').trimEnd().split('\n').toSorted()).toEqual(results)
  expect(run).toMatchObject({ events: 3_001, late: 0, refused: 1, disorderMs: 2_999_000, isSorted: true })
  expect(run.firstRefusal).toContain('not JSON')
})

it('leaves the results of an earlier run alone where there is no file to read', async () => {
  writeFileSync(at('kept'), 'results')
  await expect(runFile(q12, { from: at('nowhere'), to: at('kept') })).rejects.toThrow(/ENOENT/)
  await expect(runFile(q12, { from: directory, to: at('kept') })).rejects.toThrow(/EISDIR/)
  expect(readFileSync(at('kept'), 'utf8')).toBe('results')
})

it('does not write over the events, by whatever name', async () => {
  writeFileSync(at('precious'), '{"a":1}')
  symlinkSync(at('precious'), at('other name'))
  await expect(runFile(q12, { from: at('precious'), to: at('other name') })).rejects.toThrow(ConfigurationError)
  expect(readFileSync(at('precious'), 'utf8')).toBe('{"a":1}')
})

describe('the commands', () => {
  const generate = (...flags: string[]) =>
    spawnSync(process.execPath, ['bin/nexmark/generate.ts', ...flags], { encoding: 'utf8' })
  const run = (...flags: string[]) =>
    spawnSync(process.execPath, ['bin/nexmark/run.ts', ...flags], { encoding: 'utf8' })
  beforeAll(() => writeFileSync(at('no events'), '{"a":1}\n{"b":2}'))

  it('generate a file and run a query over it', () => {
    const flags = ['--events', '500', '--seed', '12', '--disorder-ms', '300', '--out', at('generated')]
    execFileSync(process.execPath, ['bin/nexmark/generate.ts', ...flags], { stdio: 'ignore' })
    const expected = [...eventLines({ events: 500, seed: 12, disorderMs: 300 })]
    expect(readFileSync(at('generated'), 'utf8')).toBe(expected.map((line) => `${line}\n`).join(''))
    const { status, stderr } = run('--query', 'q0', '--in', at('generated'), '--out', at('q0'))
    expect([status, stderr]).toEqual([0, expect.stringContaining('500 events')])
    // Of every 50 events 46 are bids.
    expect(readFileSync(at('q0'), 'utf8').trimEnd().split('\n')).toHaveLength(460)
  })

  it.each([
    [15_000, 'windows waited for that long'],
    [900_000, 'they were sorted first'],
  ])('lose no bid where the events are %d ms out of order', async (disorderMs, said) => {
    const lines = [...eventLines({ events: 20_000, rate: 20, seed: 3, disorderMs })]
    writeFileSync(at('disordered'), lines.join('\n'))
    const { status, stderr } = run('--query', 'q12', '--in', at('disordered'), '--out', at('q12'))
    expect([status, stderr]).toEqual([0, expect.stringContaining(said)])
    const { results } = await runLines('q12', [...eventLines({ events: 20_000, rate: 20, seed: 3 })])
    expect(readFileSync(at('q12'), 'utf8').trimEnd().split('\n').toSorted()).toEqual(results)
  })

  it('read what can be read only once', async () => {
    const lines = [...eventLines({ events: 3_000, seed: 5, disorderMs: 15_000 })]
    writeFileSync(at('piped'), lines.join('\n'))
    const flags = `--query q12 --out '${at('q12 of a pipe')}' --in /dev/stdin`
    // Through a shell, since what spawnSync gives is a socket, which no path opens.
    const shell = `cat '${at('piped')}' | '${process.execPath}' bin/nexmark/run.ts ${flags}`
    const { status, stderr } = spawnSync('sh', ['-c', shell], { encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, expect.stringContaining('3,000 events')])
    const { results } = await runLines('q12', lines)
    expect(readFileSync(at('q12 of a pipe'), 'utf8').trimEnd().split('\n').toSorted()).toEqual(results)
  })

  it('exit with 2 and one line for flags that make no sense', () => {
    const refusals = [
      generate('--events', '-5', '--seed', '1', '--out', at('x')),
      generate('--events', '5', '--seed', '1'),
      run('--query', 'q99', '--in', at('no events'), '--out', at('x')),
    ]
    expect(refusals.map(({ status }) => status)).toEqual([2, 2, 2])
    for (const { stderr } of refusals) expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  })

  it('exit with 1 where a line is no event', () => {
    const { status, stderr } = run('--query', 'q0', '--in', at('no events'), '--out', at('x'))
    expect([status, stderr]).toEqual([1, expect.stringContaining('Lines in no result: 2, the first:')])
  })
})
