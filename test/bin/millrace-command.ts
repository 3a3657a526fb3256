import { type ChildProcess, spawn } from 'node:child_process'
import { resolve } from 'node:path'

const boundMs = 60_000

/** One run of `millrace` without a terminal, in a directory of its own. */
export class MillraceCommand {
  readonly #child: ChildProcess
  readonly #exited: Promise<number | NodeJS.Signals>
  stdout = ''
  stderr = ''

  constructor(directory: string, args: readonly string[]) {
    this.#child = spawn(process.execPath, [resolve('bin/millrace.ts'), ...args], {
      cwd: directory,
      stdio: ['pipe', 'pipe', 'pipe'],
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

  /** Ends the standard input behind this text. */
  input(text: string): void {
    this.#child.stdin?.end(text)
  }

  /** Types this text; the standard input stays open. */
  types(text: string): void {
    this.#child.stdin?.write(text)
  }

  /** Resolves when the output matches; rejects when the command ends before, or after a bound. */
  async shows(pattern: RegExp): Promise<void> {
    const found = new Promise<'found'>((settle) => {
      const look = () => {
        if (pattern.test(this.stdout)) settle('found')
      }
      this.#child.stdout?.on('data', look)
      look()
    })
    await Promise.race([found, this.#exited, this.#bound()])
    if (!pattern.test(this.stdout)) {
      throw new Error(`the output never matched ${pattern}:\n${this.stdout}\n${this.stderr}`)
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  /** The exit code, or the signal that ended the command. */
  async ends(): Promise<number | NodeJS.Signals> {
    const end = await Promise.race([this.#exited, this.#bound()])
    if (end !== 'too late') return end as number | NodeJS.Signals
    this.#child.kill('SIGKILL')
    throw new Error(`the command did not end in time:\n${this.stdout}\n${this.stderr}`)
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
