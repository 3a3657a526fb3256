import { type ChildProcess, spawn } from 'node:child_process'
import { resolve } from 'node:path'

interface Started {
  readonly directory: string
  /** Whether it has a process group of its own, as a shell with a terminal gives to each command. */
  readonly detached: boolean
  readonly stdin: 'pipe' | 'ignore'
  readonly boundMs: number
}

/** A command of this repository that runs without a terminal, in a directory of its own. */
export class WatchedRun {
  readonly #child: ChildProcess
  readonly #exited: Promise<number | NodeJS.Signals>
  readonly #boundMs: number
  stdout = ''
  stderr = ''

  private constructor(file: string, args: readonly string[], { directory, detached, stdin, boundMs }: Started) {
    this.#boundMs = boundMs
    this.#child = spawn(process.execPath, [resolve(file), ...args], {
      cwd: directory,
      stdio: [stdin, 'pipe', 'pipe'],
      detached,
    })
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text
    })
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text
    })
    this.#exited = new Promise((settle) => {
      this.#child.once('close', (code, signal) => settle(code ?? signal ?? 'SIGKILL'))
    })
  }

  /** Runs `millrace`. */
  static millrace(directory: string, args: readonly string[]): WatchedRun {
    return new WatchedRun('bin/millrace.ts', args, { directory, detached: false, stdin: 'pipe', boundMs: 120_000 })
  }

  /** Runs `npm start`. */
  static start(directory: string, flags: readonly string[]): WatchedRun {
    return new WatchedRun('bin/start.ts', flags, { directory, detached: true, stdin: 'ignore', boundMs: 180_000 })
  }

  /** Ends the standard input behind this text. */
  input(text: string): void {
    this.#child.stdin?.end(text)
  }

  /** Types this text; the standard input stays open. */
  types(text: string): void {
    this.#child.stdin?.write(text)
  }

  /** Resolves when the output matches; rejects when the run ends before, or after a bound. */
  async shows(pattern: RegExp | { readonly test: (stdout: string) => boolean }): Promise<void> {
    const found = new Promise<'found'>((settle) => {
      const look = () => {
        if (pattern.test(this.stdout)) settle('found')
      }
      this.#child.stdout?.on('data', look)
      look()
    })
    const first = await Promise.race([found, this.#exited, this.#bound()])
    if (first === 'found' || pattern.test(this.stdout)) return
    throw new Error(`the output never matched ${pattern}:\n${this.stdout}\n${this.stderr}`)
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  /** Stops the processes that the run started, and not the run: what they were given stays in flight until SIGCONT. */
  stopWorkers(): void {
    this.signalGroup('SIGSTOP')
    this.signal('SIGCONT')
  }

  /** Signals a detached run and the processes that it started, as a terminal does at Ctrl-C. */
  signalGroup(name: NodeJS.Signals): void {
    const { pid } = this.#child
    // Without a pid the command never started; 0 would mean the group of the tests.
    if (pid !== undefined) process.kill(-pid, name)
  }

  /** The exit code, or the signal that ended the run. */
  async ends(): Promise<number | NodeJS.Signals> {
    const end = await Promise.race([this.#exited, this.#bound()])
    if (end !== 'too late') return end as number | NodeJS.Signals
    this.#child.kill('SIGKILL')
    throw new Error(`the run did not end in time:\n${this.stdout}\n${this.stderr}`)
  }

  /** Ends what a failed test left behind. */
  async clear(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  #bound(): Promise<'too late'> {
    return new Promise((settle) => {
      setTimeout(() => settle('too late'), this.#boundMs).unref()
    })
  }
}
