import { type ChildProcess, fork } from 'node:child_process'
import { basename, dirname, extname } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { InvocationInfo, InvocationOutcome } from '../../emulator/event-source-mapping/index.ts'
import type { EnvironmentMessage, EnvironmentOptions, InvokeMessage } from './protocol.ts'
import type { ResidentMb } from './resident-memory.ts'

export interface WorkerOptions {
  readonly handlerFile: string
  readonly handlerName: string
  readonly functionName: string
  readonly environment: Readonly<Record<string, string>>
  readonly memoryLimitMb: number
  readonly timeoutMs: number
  readonly initTimeoutMs: number
  readonly residentMb: ResidentMb
  readonly onLine: (workerId: string, stream: 'stdout' | 'stderr', line: string) => void
  /** After the process has ended, for whatever reason; the outcome of an invocation in flight is settled by then. */
  readonly onExit: (worker: Worker) => void
}

/** Between looks at the memory of a busy process. */
const memoryLookMs = 100
/** The least memory of a function on Lambda. Below it Node alone holds more, and only its heap is bounded. */
const leastMemoryMb = 128

/**
 * One child process that stands in for an execution environment.
 *
 * Invariants:
 * 1. Every invocation has exactly one outcome: the answer, the failure that the handler reports, or the end of the process.
 * 2. An outcome that says the environment is gone comes after the process has ended: it can no longer do anything.
 */
export class Worker {
  readonly id: string
  readonly pid: number | undefined
  /** Resolves with `undefined` when the handler is loaded, else with the reason why it could not be. */
  readonly initialised: Promise<string | undefined>
  /** Resolves when the process has ended. */
  readonly exited: Promise<void>
  readonly startedMs = Date.now()
  state: 'starting' | 'idle' | 'busy' | 'exited' = 'starting'
  /** The handler was loaded at some time. */
  wasReady = false
  invocations = 0
  readonly #options: WorkerOptions
  readonly #child: ChildProcess
  #settle: ((outcome: InvocationOutcome) => void) | undefined
  #endInit: (failure: string | undefined) => void = () => {}
  /** Why the pool killed it, where it did. */
  #killedBecause: string | undefined
  #timer: NodeJS.Timeout
  #memoryLooks: NodeJS.Timeout | undefined

  constructor(id: string, options: WorkerOptions) {
    this.id = id
    this.#options = options
    this.#child = startProcess(options)
    this.pid = this.#child.pid
    this.initialised = new Promise((resolve) => {
      this.#endInit = resolve
    })
    this.#timer = setTimeout(() => {
      this.#kill(`Runtime.InitTimeout: the handler was not loaded within ${options.initTimeoutMs} ms`)
    }, options.initTimeoutMs)
    this.exited = new Promise((resolve) => {
      const end = (how: string) => {
        this.#onExit(how)
        resolve()
      }
      // A process that could not be started has no exit; any other error leaves it running.
      this.#child.on('error', (error) => {
        if (this.pid === undefined) end(error.message)
      })
      this.#child.once('exit', (code, signal) => end(signal === null ? `status ${code}` : `signal ${signal}`))
    })
    this.#child.on('message', (message) => this.#onMessage(message as EnvironmentMessage))
    forwardLines(this.#child.stdout, (line) => options.onLine(id, 'stdout', line))
    forwardLines(this.#child.stderr, (line) => options.onLine(id, 'stderr', line))
  }

  /** Runs an invocation. Call it only while the worker is idle. */
  invoke(event: string, info: InvocationInfo): Promise<InvocationOutcome> {
    const { timeoutMs } = this.#options
    this.state = 'busy'
    this.invocations += 1
    const { requestId, functionArn } = info
    const deadlineMs = Date.now() + timeoutMs
    const message: InvokeMessage = { kind: 'invoke', event, requestId, functionArn, deadlineMs }
    return new Promise((resolve) => {
      this.#settle = resolve
      const reason = `Task timed out after ${(timeoutMs / 1_000).toFixed(2)} seconds`
      this.#timer = setTimeout(() => this.#kill(reason), timeoutMs)
      this.#memoryLooks = setInterval(() => this.#lookAtMemory(), memoryLookMs)
      // A channel that is closed already means that the process is ending; its exit settles the invocation.
      this.#child.send(message, () => {})
    })
  }

  /** Ends the process at once, as a crash of the machine would. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.exited
  }

  /** Lets the process end by itself, and insists after a second. */
  async end(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect()
    const insist = setTimeout(() => this.#child.kill('SIGKILL'), 1_000)
    await this.exited
    clearTimeout(insist)
  }

  #kill(reason: string): void {
    this.#killedBecause = reason
    this.#child.kill('SIGKILL')
  }

  /** V8 bounds the heap by itself; buffers and what native code holds are outside of it. */
  #lookAtMemory(): void {
    const { memoryLimitMb, residentMb } = this.#options
    const heldMb = this.pid === undefined ? undefined : residentMb(this.pid)
    if (memoryLimitMb < leastMemoryMb || heldMb === undefined || heldMb <= memoryLimitMb) return
    this.#kill(
      `Runtime.OutOfMemory: the environment holds ${Math.ceil(heldMb)} MB, above its memory limit of ${memoryLimitMb} MB`,
    )
  }

  #onMessage(message: EnvironmentMessage): void {
    // An answer that crosses the kill of a time-out is too late.
    if (this.#killedBecause !== undefined) return
    clearTimeout(this.#timer)
    if (message.kind === 'ready') {
      this.state = 'idle'
      this.wasReady = true
      this.#endInit(undefined)
    } else if (message.kind === 'init-failed') {
      this.#killedBecause = message.reason
      this.#child.kill('SIGKILL')
    } else if (message.kind === 'answered') {
      this.#end({ kind: 'answered', payload: JSON.parse(message.answer) })
    } else {
      this.#end({ kind: 'function-error', reason: message.reason })
    }
  }

  #end(outcome: InvocationOutcome): void {
    clearInterval(this.#memoryLooks)
    if (this.state === 'busy') this.state = 'idle'
    const settle = this.#settle
    this.#settle = undefined
    settle?.(outcome)
  }

  #onExit(how: string): void {
    clearTimeout(this.#timer)
    this.state = 'exited'
    const reason = this.#killedBecause ?? this.#exitReason(how)
    this.#endInit(reason)
    this.#end({ kind: 'function-error', reason })
    this.#options.onExit(this)
  }

  #exitReason(how: string): string {
    // V8 aborts when the heap is full; a shell reports SIGABRT as 134.
    const isAbort = how === 'signal SIGABRT' || how === 'status 134'
    if (!isAbort) return `Runtime.ExitError: the environment ended with ${how}`
    return `Runtime.OutOfMemory: the environment aborted (${how}), most likely above its memory limit of ${this.#options.memoryLimitMb} MB`
  }
}

function startProcess(options: WorkerOptions): ChildProcess {
  // Beside this file, and compiled with it: environment.ts from source, environment.js from the package.
  const here = fileURLToPath(import.meta.url)
  const { handlerFile, handlerName, functionName, memoryLimitMb, environment } = options
  const given: EnvironmentOptions = { handlerFile, handlerName, functionName, memoryLimitMb, parentPid: process.pid }
  return fork(`${dirname(here)}/environment${extname(here)}`, [JSON.stringify(given)], {
    execArgv: [`--max-old-space-size=${memoryLimitMb}`, '--enable-source-maps'],
    // Nothing of the developer's own environment: a handler sees what the function declares, as on Lambda.
    env: {
      PATH: process.env.PATH,
      TZ: 'UTC',
      AWS_REGION: 'us-east-1',
      AWS_DEFAULT_REGION: 'us-east-1',
      AWS_LAMBDA_FUNCTION_NAME: functionName,
      AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(memoryLimitMb),
      LAMBDA_TASK_ROOT: dirname(handlerFile),
      _HANDLER: `${basename(handlerFile, extname(handlerFile))}.${handlerName}`,
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    serialization: 'advanced',
  })
}

/** A line that never ends is forwarded in pieces of so many characters. */
const longestLine = 65_536

function forwardLines(stream: Readable | null, onLine: (line: string) => void): void {
  let rest = ''
  stream?.setEncoding('utf8')
  stream?.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (; rest.length > longestLine; rest = rest.slice(longestLine)) lines.push(rest.slice(0, longestLine))
    for (const line of lines) onLine(line)
  })
  stream?.on('end', () => {
    if (rest !== '') onLine(rest)
  })
}
