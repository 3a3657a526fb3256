/**
 * Worker processes as the invoker of a local event source mapping.
 *
 * Invariants:
 * 1. A worker has at most one invocation; what finds none free waits in the order in which it came.
 * 2. A worker that dies is replaced at once, or after a delay while others live; one that never came to an invocation, since its handler cannot be loaded or ends the
 *    process, is replaced with the next invocation: a broken handler costs one process per attempt and no more.
 * 3. With affinity a unit is served by its holder only (see Affinity); what waits for a dead worker goes to the new holder.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { ConfigurationError } from '../../core/errors.ts'
import type { InvocationInfo, InvocationOutcome, Invoker } from '../../emulator/event-source-mapping/index.ts'
import { Affinity } from './affinity.ts'
import { type ResidentMb, residentMb as residentMbOnLinux } from './resident-memory.ts'
import { Worker, type WorkerOptions } from './worker.ts'

export interface WorkerPoolOptions {
  /** Environments, so invocations at a time. */
  readonly size: number
  /** An .mjs, .js or .ts file that exports the handler. */
  readonly handlerFile: string
  /** @default 'handler' */
  readonly handlerName?: string
  /** @default 'local' */
  readonly functionName?: string
  /** What the handler finds in `process.env`, beside Lambda's own variables. Nothing else is inherited but PATH. */
  readonly environment: Readonly<Record<string, string>>
  /**
   * Limit of the JavaScript heap, at which an environment aborts, and from 128 on, the least on Lambda, of all that its process holds
   * while it is busy, where `residentMb` can tell.
   */
  readonly memoryLimitMb: number
  readonly timeoutMs: number
  /** @default 10,000, as on Lambda */
  readonly initTimeoutMs?: number
  /** `shards`: each shard, or lane of one, stays with one worker while it lives. `none`: any free worker, as on Lambda. @default 'none' */
  readonly affinity?: 'none' | 'shards'
  /** What a process holds. @default what Linux says; nothing on other systems */
  readonly residentMb?: ResidentMb
  /**
   * How long a dead worker's replacement waits while other workers live. Starting a process takes a core for a moment, which those
   * that take its shards over can use better. @default 0
   */
  readonly replacementDelayMs?: number
  /** A line that a worker wrote. @default dropped */
  readonly onLine?: (workerId: string, stream: 'stdout' | 'stderr', line: string) => void
  /** @default dropped */
  readonly onEvent?: (event: WorkerEvent) => void
  /** Hears of every invocation that a worker ran, once it has ended. @default dropped */
  readonly onInvocation?: (invocation: PoolInvocation) => void
}

/** An invocation that a worker ran. Times are milliseconds since 1970; what came before `startedAtMs` was waiting for the worker. */
export interface PoolInvocation {
  readonly workerId: string
  readonly event: unknown
  readonly info: InvocationInfo
  readonly startedAtMs: number
  readonly endedAtMs: number
  readonly outcome: InvocationOutcome
}

/** What happened to a worker, for a display. `atMs` is milliseconds since 1970. */
export type WorkerEvent =
  | { readonly kind: 'ready'; readonly workerId: string; readonly atMs: number; readonly coldStartMs: number }
  | { readonly kind: 'init-failed'; readonly workerId: string; readonly atMs: number; readonly reason: string }
  /** `orphans` maps each unit that the worker held to its new holder, `undefined` while no worker is left. */
  | {
      readonly kind: 'exited'
      readonly workerId: string
      readonly atMs: number
      readonly orphans: ReadonlyMap<string, string | undefined>
    }
  /** Units that moved to a worker that joined. */
  | { readonly kind: 'moved'; readonly workerId: string; readonly atMs: number; readonly units: readonly string[] }

export interface WorkerStatus {
  readonly id: string
  readonly pid: number | undefined
  readonly state: Worker['state']
  readonly invocations: number
  /** Shards, or `<shard>/<lane>`, that it holds; always empty without affinity. */
  readonly units: readonly string[]
}

export interface WorkerPool extends Invoker {
  /** Living workers, the oldest first. */
  workers(): readonly WorkerStatus[]
  /** Invocations that wait for a worker. */
  waiting(): number
  /** Ends a worker by SIGKILL and resolves when it is gone. Throws a ConfigurationError for an unknown id. */
  kill(workerId: string): Promise<void>
  /** Adds workers while running and resolves when they are ready. */
  addWorkers(count: number): Promise<void>
  /** Lets invocations in flight finish, refuses what waits, and resolves when no process is left. */
  stop(): Promise<void>
}

interface Job {
  readonly event: unknown
  readonly eventText: string
  readonly info: InvocationInfo
  readonly unit: string
  readonly settle: (outcome: InvocationOutcome) => void
}

/**
 * Starts the workers and resolves when each has loaded the handler, or has failed to: a handler that cannot be loaded is a function
 * error of every invocation, as on Lambda. Throws a ConfigurationError when the file does not exist or a number is out of range.
 *
 * @example
 * const pool = await startWorkerPool({
 *   size: 3, handlerFile: 'functions/flights/handler.ts', environment: {}, memoryLimitMb: 512, timeoutMs: 30_000,
 * })
 * const mapping = new EventSourceMapping({ ...ports, invoker: pool })
 */
export async function startWorkerPool(options: WorkerPoolOptions): Promise<WorkerPool> {
  const { size, memoryLimitMb, timeoutMs } = options
  for (const [name, value] of Object.entries({ size, memoryLimitMb, timeoutMs })) {
    if (!Number.isInteger(value) || value < 1) {
      throw new ConfigurationError(`${name} of the worker pool is ${value}: give an integer of at least 1.`)
    }
  }
  if (!existsSync(options.handlerFile)) {
    throw new ConfigurationError(`The handler file ${options.handlerFile} does not exist: check its path.`)
  }
  const pool = new ProcessPool(options)
  await pool.addWorkers(size)
  return pool
}

class ProcessPool implements WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #affinity: Affinity | undefined
  readonly #workers = new Map<string, Worker>()
  readonly #inFlight = new Set<Promise<InvocationOutcome>>()
  #queue: Job[] = []
  #nextId = 1
  /** Workers that failed to load the handler and are not replaced yet. */
  #missing = 0
  #initFailure = ''
  #isStopped = false

  constructor(options: WorkerPoolOptions) {
    this.#options = options
    this.#affinity = options.affinity === 'shards' ? new Affinity() : undefined
  }

  invoke(event: unknown, info: InvocationInfo): Promise<InvocationOutcome> {
    if (this.#isStopped) return Promise.resolve({ kind: 'not-run', reason: 'the worker pool is stopped' })
    const unit = info.lane === 0 ? info.shardId : `${info.shardId}/${info.lane}`
    const outcome = new Promise<InvocationOutcome>((settle) => {
      this.#queue.push({ event, eventText: JSON.stringify(event), info, unit, settle })
    })
    if (this.#missing > 0) {
      this.#missing -= 1
      void this.#start()
    }
    this.#dispatch()
    return outcome
  }

  workers(): readonly WorkerStatus[] {
    return [...this.#workers.values()].map(({ id, pid, state, invocations }) => ({
      id,
      pid,
      state,
      invocations,
      units: this.#affinity?.unitsOf(id) ?? [],
    }))
  }

  waiting(): number {
    return this.#queue.length
  }

  async kill(workerId: string): Promise<void> {
    const worker = this.#workers.get(workerId)
    if (worker === undefined) {
      const living = [...this.#workers.keys()].join(', ')
      throw new ConfigurationError(`There is no worker ${workerId}: the living ones are ${living}.`)
    }
    await worker.kill()
  }

  async addWorkers(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#start()))
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    const refused = this.#queue
    this.#queue = []
    for (const job of refused) job.settle({ kind: 'not-run', reason: 'the worker pool is stopped' })
    await Promise.all(this.#inFlight)
    await Promise.all([...this.#workers.values()].map((worker) => worker.end()))
  }

  async #start(): Promise<void> {
    if (this.#isStopped) return
    const { onLine = () => {}, handlerFile, handlerName = 'handler', functionName = 'local' } = this.#options
    const { initTimeoutMs = 10_000, residentMb = residentMbOnLinux } = this.#options
    const options: WorkerOptions = {
      ...this.#options,
      ...{ onLine, handlerName, functionName, initTimeoutMs, residentMb },
      handlerFile: resolve(handlerFile),
      onExit: (worker) => this.#onExit(worker),
    }
    const id = `w${this.#nextId}`
    this.#nextId += 1
    const worker = new Worker(id, options)
    this.#workers.set(id, worker)
    const failure = await worker.initialised
    if (failure === undefined) this.#onReady(worker)
    else this.#onInitFailed(worker, failure)
  }

  #onReady(worker: Worker): void {
    const atMs = Date.now()
    this.#options.onEvent?.({ kind: 'ready', workerId: worker.id, atMs, coldStartMs: atMs - worker.startedMs })
    if (this.#workers.has(worker.id)) {
      const units = this.#affinity?.join(worker.id) ?? []
      if (units.length > 0) this.#options.onEvent?.({ kind: 'moved', workerId: worker.id, atMs, units })
    }
    this.#dispatch()
  }

  #onInitFailed(worker: Worker, reason: string): void {
    this.#options.onEvent?.({ kind: 'init-failed', workerId: worker.id, atMs: Date.now(), reason })
    this.#startLater(reason)
  }

  #startLater(reason: string): void {
    if (this.#isStopped) return
    this.#missing += 1
    this.#initFailure = reason
    this.#refuseWhenNobodyIsLeft()
  }

  /** Nothing would ever take what waits when no environment can load the handler. */
  #refuseWhenNobodyIsLeft(): void {
    if (this.#workers.size > 0) return
    const jobs = this.#queue
    this.#queue = []
    for (const job of jobs) job.settle({ kind: 'function-error', reason: this.#initFailure })
  }

  #onExit(worker: Worker): void {
    this.#workers.delete(worker.id)
    const orphans = this.#affinity?.leave(worker.id) ?? new Map<string, string | undefined>()
    this.#options.onEvent?.({ kind: 'exited', workerId: worker.id, atMs: Date.now(), orphans })
    if (worker.invocations > 0 && !this.#isStopped) this.#replace()
    // A module that ends its process by itself, right after it was loaded, would be started again without end.
    else if (worker.wasReady) this.#startLater('Runtime.ExitError: the environment ended before its first invocation')
    this.#dispatch()
  }

  #replace(): void {
    const { replacementDelayMs = 0 } = this.#options
    if (this.#workers.size === 0 || replacementDelayMs === 0) void this.#start()
    // Once the pool is stopped, `#start` does nothing.
    else setTimeout(() => void this.#start(), replacementDelayMs).unref()
  }

  /** Gives each idle worker the oldest invocation that it may take. */
  #dispatch(): void {
    for (const worker of this.#workers.values()) {
      if (worker.state !== 'idle' || this.#queue.length === 0) continue
      const index = this.#queue.findIndex((job) => this.#mayTake(worker, job))
      const [job] = index === -1 ? [] : this.#queue.splice(index, 1)
      if (job !== undefined) this.#give(worker, job)
    }
  }

  #mayTake(worker: Worker, job: Job): boolean {
    return this.#affinity === undefined || this.#affinity.holderOf(job.unit) === worker.id
  }

  #give(worker: Worker, job: Job): void {
    const { event, info } = job
    const startedAtMs = Date.now()
    const outcome = worker.invoke(job.eventText, info)
    this.#inFlight.add(outcome)
    void outcome.then((settled) => {
      this.#inFlight.delete(outcome)
      const ended = { startedAtMs, endedAtMs: Date.now(), outcome: settled }
      this.#options.onInvocation?.({ workerId: worker.id, event, info, ...ended })
      job.settle(settled)
      this.#dispatch()
    })
  }
}
