/**
 * What a handler runs on: the ports, opened once, and the runners of the topology's stages. They outlive an invocation; nothing
 * else of one does.
 */
import type { Context } from 'aws-lambda'
import { ConfigurationError } from '../../core/errors.ts'
import { type Plan, type StagePlan, stageNamed } from '../../plan/plan.ts'
import type { AnnouncerPorts } from '../../runtime/announcer/knowledge.ts'
import type { BatchResult, PartitionBatch } from '../../runtime/batch.ts'
import type { Redrive } from '../../runtime/dead-letter.ts'
import type { EventSource, HandlerPorts } from '../../runtime/ports.ts'
import type { Runner } from '../../runtime/runner.ts'
import type { Sink } from '../../runtime/sink.ts'
import { type RunnerOptions, StageRunner } from '../../runtime/stage-runner.ts'
import type { SinkHandle } from '../../topology/handles.ts'
import { EventError } from '../events/event-error.ts'

/** A sink that the handler file provides itself. */
export interface ProvidedSink {
  readonly name: string
  readonly sink: Sink
}

/**
 * Provides the user's own sink for a declared one.
 *
 * @example
 * export const handler = middy().handler(streamHandler(orders, { sinks: [provide(webhooks, webhookSink(url))] }))
 */
export function provide<T, Item>(handle: SinkHandle<T>, sink: Sink<NoInfer<T>, Item>): ProvidedSink {
  return { name: handle.name, sink: sink as Sink }
}

export interface StreamHandlerOptions extends RunnerOptions {
  /**
   * What the handler runs on. Tests name theirs, such as `memoryPorts()`; there is never a silent fallback to memory.
   * @default what the function's environment says it is bound to
   */
  readonly ports?: HandlerPorts
  /** The user's own sinks. @default none */
  readonly sinks?: readonly ProvidedSink[]
}

/** What is read of an invocation's context. */
export type InvocationContext = Pick<Context, 'getRemainingTimeInMillis'>

/** The runners of a topology's stages, each made when its first batch comes. */
export class Stages {
  readonly #plan: Plan
  readonly #options: StreamHandlerOptions
  readonly #runners = new Map<string, Promise<Runner>>()
  #ports: Promise<HandlerPorts> | undefined
  #announcer: AnnouncerPorts | undefined

  constructor(planned: Plan, options: StreamHandlerOptions) {
    this.#plan = planned
    this.#options = options
    const foreign = options.sinks?.find(({ name }) => !planned.graph.sinks.some((sink) => sink.name === name))
    if (foreign)
      throw new ConfigurationError(`provide("${foreign.name}", ...) names no sink of topology "${planned.topology}".`)
  }

  /** The ports, opened once; where that failed, opened again with the next invocation. */
  ports(): Promise<HandlerPorts> {
    this.#ports ??= this.#openPorts().catch((error) => {
      this.#ports = undefined
      throw error
    })
    return this.#ports
  }

  async #openPorts(): Promise<HandlerPorts> {
    const ports = this.#options.ports ?? (await (await import('./open-ports.ts')).openPorts(this.#plan, process.env))
    ports.serve?.(this.#plan)
    const provided = new Map((this.#options.sinks ?? []).map(({ name, sink }) => [name, sink]))
    // Not spread: ports may be an object of a class, whose methods a spread would lose.
    const { clock, logger, metrics, deadLetters } = ports
    return {
      clock,
      logger,
      metrics,
      deadLetters,
      sink: (name) => provided.get(name) ?? ports.sink(name),
      state: (stage) => ports.state?.(stage),
      frames: (stage) => ports.frames?.(stage),
      lineage: (stage) => ports.lineage?.(stage),
      retentionMs: (stage) => ports.retentionMs?.(stage),
      upstreamRetentionMs: (stage) => ports.upstreamRetentionMs?.(stage),
      sourceOf: (eventSource, declared) => ports.sourceOf(eventSource, declared),
      readsAnswers: (stage) => ports.readsAnswers?.(stage) !== false,
      freezesValues: ports.freezesValues === true,
      checksPurity: ports.checksPurity === true,
      flush: () => ports.flush(),
    }
  }

  /** The name of the stage that an event source feeds, which is that of its source or the keyed stage's own. */
  stageOf(ports: HandlerPorts, eventSource: EventSource): string {
    const declared = this.#plan.stages.map((stage) => stage.name)
    const stage = ports.sourceOf(eventSource, declared)
    if (stage !== undefined) return stage
    const { arn, topic } = eventSource
    throw new ConfigurationError(
      `the event source ${[arn, topic].filter(Boolean).join(' topic ') || '(unnamed)'} is bound to no source of topology "${this.#plan.topology}" (${declared.join(', ')}): bind it, or remove its event source mapping.`,
      { code: 'unknown-event-source' },
    )
  }

  keepsProgress(stage: string): boolean {
    return stageNamed(this.#plan, stage).kind !== 'stateless'
  }

  isKeyed(stage: string): boolean {
    return stageNamed(this.#plan, stage).kind === 'keyed'
  }

  async run(
    ports: HandlerPorts,
    stage: string,
    batch: readonly PartitionBatch[],
    context: InvocationContext,
    redrive: Redrive | undefined,
  ): Promise<BatchResult> {
    if (redrive && stageNamed(this.#plan, stage).kind === 'keyed') refuseRedrive(stage)
    const runner = await this.#runner(ports, stage)
    const invocation = { deadlineMs: ports.clock.nowMs() + context.getRemainingTimeInMillis() }
    const result =
      redrive && runner.redrive ? runner.redrive(batch, redrive, invocation) : runner.run(batch, invocation)
    return result.finally(() => {
      ports.metrics.gauge('duration-left', context.getRemainingTimeInMillis(), 'milliseconds')
      ports.flush()
    })
  }

  /** One round of the announcer. Its adapters are in a bundle only where it is bound. */
  async announce(context: InvocationContext): Promise<void> {
    if (process.env.MILLRACE_ADAPTER_ANNOUNCER_KINESIS === 'false') {
      throw new ConfigurationError(
        `the bundle cannot announce for topology "${this.#plan.topology}": it was made for a stage; only the rule of its StreamApplication is to invoke the announcer.`,
      )
    } else {
      const { announceWithin, openAnnouncerPorts } = await import('./announcer-function.ts')
      const given = this.#options.ports && (await this.ports())
      this.#announcer ??= given ?? (await openAnnouncerPorts(this.#plan, process.env))
      await announceWithin(this.#plan, this.#announcer, context.getRemainingTimeInMillis())
    }
  }

  #runner(ports: HandlerPorts, stage: string): Promise<Runner> {
    const known = this.#runners.get(stage)
    if (known) return known
    const runner = openRunner(this.#plan.topology, stageNamed(this.#plan, stage), ports, this.#options)
    this.#runners.set(stage, runner)
    runner.catch(() => this.#runners.delete(stage))
    return runner
  }
}

function refuseRedrive(stage: string): never {
  throw new EventError(
    'redrive-of-keyed-stage',
    `a dead letter of the keyed stage "${stage}" was sent to its function: \`millrace dead-letters redrive\` sends it to the stage's stream`,
  )
}

/** The runners of stages that keep progress are in a bundle only where a state table is bound, like the adapters. */
async function openRunner(
  topology: string,
  stage: StagePlan,
  ports: HandlerPorts,
  options: RunnerOptions,
): Promise<Runner> {
  if (stage.kind === 'stateless') return new StageRunner(topology, stage, ports, options)
  if (process.env.MILLRACE_ADAPTER_STATE_DYNAMODB === 'false') {
    throw new ConfigurationError(
      `the bundle cannot run stage "${stage.name}" of topology "${topology}", which keeps state: it was made without a state table; deploy it with StreamApplication.`,
    )
  } else {
    const { createRunner } = await import('../../runtime/runner.ts')
    return createRunner(topology, stage, ports, options)
  }
}
