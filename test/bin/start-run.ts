import { type ChildProcess, spawn } from 'node:child_process'
import { resolve } from 'node:path'

const boundMs = 90_000

/** One run of `npm start` without a terminal, in a directory of its own. */
export class StartRun {
  readonly #child: ChildProcess
  readonly #exited: Promise<number | NodeJS.Signals>
  stdout = ''
  stderr = ''

  constructor(directory: string, ...flags: readonly string[]) {
    this.#child = spawn(process.execPath, [resolve('bin/start.ts'), ...flags], {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      // A process group of its own, as a shell with a terminal gives to each command.
      detached: true,
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

  /** Resolves when the output matches; rejects when the run ends before, or after a bound. */
  async shows(pattern: RegExp | { readonly test: (stdout: string) => boolean }): Promise<void> {
    const found = new Promise<void>((settle) => {
      const look = () => {
        if (pattern.test(this.stdout)) settle()
      }
      this.#child.stdout?.on('data', look)
      look()
    })
    const ended = this.#exited.then(() => 'ended')
    if ((await Promise.race([found, ended, this.#bound()])) === undefined || pattern.test(this.stdout)) return
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

  /** Signals the run and the processes that it started, as a terminal does at Ctrl-C. */
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
      setTimeout(() => settle('too late'), boundMs).unref()
    })
  }
}
