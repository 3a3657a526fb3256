import { execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Figure, FiguresFile } from '../../bench/figures.ts'

const boundMs = 240_000

export interface DemoResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** The figures by name; empty where none were written. */
  readonly figures: ReadonlyMap<string, Figure>
  readonly command: string | undefined
  readonly ok: boolean | undefined
  readonly missed: readonly string[] | undefined
}

/** Runs a demo without a terminal, in a directory of its own. */
export async function runDemo(name: string, ...flags: readonly string[]): Promise<DemoResult> {
  return inDirectory((cwd) => {
    const args = commandLine(name, flags)
    return new Promise((settle) => {
      execFile(process.execPath, args, { cwd, timeout: boundMs }, (error, stdout, stderr) => {
        settle({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr })
      })
    })
  })
}

/** Runs a demo until its output matches, and then sends SIGINT to it and all its workers, as Ctrl-C on a terminal does. */
export async function interruptDemo(when: RegExp, name: string, ...flags: readonly string[]): Promise<DemoResult> {
  return inDirectory((cwd) => {
    const child = spawn(process.execPath, commandLine(name, flags), { cwd, detached: true, timeout: boundMs })
    let [stdout, stderr, isInterrupted] = ['', '', false]
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      if (isInterrupted || !when.test(stdout)) return
      isInterrupted = true
      process.kill(-(child.pid ?? 0), 'SIGINT')
    })
    return new Promise((settle) => {
      child.once('close', (code) => settle({ code: code ?? -1, stdout, stderr }))
    })
  })
}

const commandLine = (name: string, flags: readonly string[]): string[] => [
  resolve(`bin/demos/${name}.ts`),
  ...['--json', 'figures.json'],
  ...flags,
]

type Ended = Pick<DemoResult, 'code' | 'stdout' | 'stderr'>

async function inDirectory(run: (directory: string) => Promise<Ended>): Promise<DemoResult> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-demo-'))
  try {
    const ended = await run(directory)
    const text = await readFile(join(directory, 'figures.json'), 'utf8').catch(() => '{"figures":[]}')
    const { command, ok, figures, missed }: Partial<FiguresFile> = JSON.parse(text)
    const byName = figures?.map((figure) => [figure.name, figure] as const)
    return { ...ended, command, ok, missed, figures: new Map(byName) }
  } finally {
    await rm(directory, { recursive: true })
  }
}

/** The values of some figures, in order. */
export const valuesOf = ({ figures }: DemoResult, ...names: readonly string[]): readonly (number | undefined)[] =>
  names.map((name) => figures.get(name)?.value)
