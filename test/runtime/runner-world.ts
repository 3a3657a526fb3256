/** A stage runner on memory ports, with sinks that a test can make fail. */
import { text } from '../../lib/core/format.ts'
import { SourceRecord } from '../../lib/core/record.ts'
import { plan, stageNamed } from '../../lib/plan/plan.ts'
import type { DeadLetter } from '../../lib/runtime/dead-letter.ts'
import type { Ports } from '../../lib/runtime/ports.ts'
import type { Outcome, Sink } from '../../lib/runtime/sink.ts'
import { type RunnerOptions, StageRunner } from '../../lib/runtime/stage-runner.ts'
import { type MemoryPorts, type MemorySink, memoryPorts } from '../../lib/testing/memory-ports.ts'
import { VirtualClock } from '../../lib/testing/virtual-clock.ts'
import { Topology } from '../../lib/topology/topology.ts'

export const invocationMs = 60_000

export interface RunnerWorld {
  readonly clock: BusyClock
  readonly ports: MemoryPorts
  readonly runner: StageRunner
  readonly deadLetters: MemorySink
  /** Runs one invocation; answers, per partition that goes back, the index of its first record that is not done. */
  run(batch: Readonly<Record<string, readonly SourceRecord[]>>, remainingMs?: number): Promise<Record<string, number>>
}

export interface WorldOptions extends RunnerOptions {
  readonly sinks?: Readonly<Record<string, Sink>>
  readonly deadLetters?: Sink<DeadLetter>
}

/** A virtual clock under steps that keep the processor busy: while one runs no timer rings, as in Node. */
export class BusyClock extends VirtualClock {
  #busyMs = 0

  override nowMs(): number {
    return super.nowMs() + this.#busyMs
  }

  work(ms: number): void {
    this.#busyMs += ms
  }
}

export function runnerOf(topology: Topology, options: WorldOptions = {}): RunnerWorld {
  const clock = new BusyClock()
  const memory = memoryPorts({ clock })
  const deadLetters = memory.deadLetters as unknown as MemorySink
  const ports: Ports = {
    ...memory,
    // Some of these steps count their calls, or take time: they are not pure.
    checksPurity: false,
    sink: (name) => options.sinks?.[name] ?? memory.sink(name),
    deadLetters: options.deadLetters ?? memory.deadLetters,
  }
  const planned = plan(topology)
  const name = planned.stages[0]?.name ?? 'none'
  const stage = stageNamed(planned, name)
  if (stage.kind !== 'stateless') throw new Error(`stage "${name}" keeps progress`)
  const runner = new StageRunner(planned.topology, stage, ports, options)
  return {
    clock,
    ports: memory,
    runner,
    deadLetters,
    async run(batch, remainingMs = invocationMs) {
      const partitions = Object.entries(batch).map(([partition, records]) => ({ partition, records }))
      const { failures } = await runner.run(partitions, { deadlineMs: clock.nowMs() + remainingMs })
      for (const { partition, index, notDone } of failures) expect(notDone).toEqual(batch[partition]?.slice(index))
      return Object.fromEntries(failures.map(({ partition, index }) => [partition, index]))
    },
  }
}

/** Records whose payloads are the texts or bytes, numbered from 0. */
export function recordsOf(payloads: readonly (string | Uint8Array)[], partition = 'p'): SourceRecord[] {
  return payloads.map((payload, index) => {
    const base64 = Buffer.from(payload as string).toString('base64')
    const position = String(index)
    return new SourceRecord({ source: 'lines', partition, position, arrivalTimeMs: 0, key: 'key', payload: base64 })
  })
}

/** A payload that is not UTF-8. */
export const undecodable = Uint8Array.of(0xff)

/** One source of text, one map and one sink. */
export function mapped(step: (line: string) => string, options: WorldOptions = {}) {
  const app = new Topology('app')
  const out = app.sink<string>('out')
  app.source('lines', text()).map(step).to(out)
  const world = runnerOf(app, options)
  return { ...world, received: () => world.ports.received(out) }
}

/** A sink that answers as told, and remembers what it was handed. */
export function answering(answer: (items: readonly unknown[], signal: AbortSignal) => Promise<readonly Outcome[]>) {
  const calls: unknown[][] = []
  const sink: Sink = {
    prepare: ({ value }) => value,
    deliver: (items, { signal }) => {
      calls.push([...items])
      return answer(items, signal)
    },
  }
  return { sink, calls }
}
