/** From one file to another: reading in pieces, and the commands. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventLines } from '../../bin/nexmark/delivery.ts'
import { linesInPieces } from '../../bin/nexmark/line-reader.ts'
import { runFile } from '../../bin/nexmark/run-file.ts'
import { queries } from '../../functions/nexmark/queries.ts'
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

it('reads a last line without an end, and passes over empty ones', () => {
  writeFileSync(at('odd'), '\n{"a":1}\n\n{"b":2}')
  expect(textOf(linesInPieces(at('odd')))).toEqual(['{"a":1}', '{"b":2}'])
  writeFileSync(at('empty'), '')
  expect(textOf(linesInPieces(at('empty')))).toEqual([])
})

it('writes to a file what a run in memory gives', async () => {
  const lines = [...eventLines({ events: 6_000, seed: 4, disorderMs: 4_000 })]
  writeFileSync(at('events'), lines.join('\n'))
  const app = (queries.q12 as (typeof queries)[string]).app
  const told: number[] = []
  const run = await runFile(app, { from: at('events'), to: at('results') }, (events) => void told.push(events))
  const { results } = await runLines('q12', lines)
  expect(readFileSync(at('results'), 'utf8').trimEnd().split('\n').toSorted()).toEqual(results)
  expect(run).toEqual({ events: 6_000, results: results.length, late: 0, refused: [] })
  expect(told.at(-1)).toBe(6_000)
})

it('leaves the results of an earlier run alone where there is no file to read', async () => {
  writeFileSync(at('kept'), 'results')
  const app = (queries.q0 as (typeof queries)[string]).app
  await expect(runFile(app, { from: at('nowhere'), to: at('kept') })).rejects.toThrow(/ENOENT/)
  expect(readFileSync(at('kept'), 'utf8')).toBe('results')
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
    expect([status, stderr]).toEqual([1, expect.stringContaining('2 lines are no event')])
  })
})
