/** The real handler of a topology with keyed stages, on either store, invoked as Lambda does: what is not done comes again. */
import type { KinesisStreamEvent } from 'aws-lambda'
import { type StreamResponse, streamHandler } from '../../lib/aws/handler/stream-handler.ts'
import { isRetryable } from '../../lib/core/errors.ts'
import { plan } from '../../lib/plan/plan.ts'
import type { StateStore } from '../../lib/state/state-store.ts'
import { lambdaContext } from '../../lib/testing/events.ts'
import { type MemoryPorts, memoryPorts } from '../../lib/testing/memory-ports.ts'
import type { Topology } from '../../lib/topology/topology.ts'
import { StateTable } from '../aws/state-table/state-table.ts'

const mostInvocations = 20

export class StageOnTable {
  readonly ports: MemoryPorts
  /** Of each stage; unused where the state is in memory. */
  readonly tables = new Map<string, StateTable>()
  /** What the handler answered for the events of each batch, in order. */
  readonly answers: string[][] = []
  readonly #handler: ReturnType<typeof streamHandler>

  /** An application of which a step fails once is not pure: it is run as in production, without a look at that. */
  constructor(app: Topology, store: 'memory' | 'DynamoDB', { checksPurity = true } = {}) {
    const memory = memoryPorts()
    const planned = plan(app)
    const stores = new Map<string, StateStore>()
    for (const { name, kind } of planned.stages) {
      if (kind === 'stateless') continue
      const table = new StateTable()
      this.tables.set(name, table)
      stores.set(name, table.store({ stage: name }))
    }
    const onTables = (stage: string): StateStore | undefined => stores.get(stage)
    const state = store === 'memory' ? memory.state : onTables
    this.ports = {
      ...memory,
      checksPurity,
      state,
      get deadLettered() {
        return memory.deadLettered
      },
    }
    this.#handler = streamHandler(app, { ports: this.ports })
  }

  /** Runs a batch of the source until all of it is done, then what it published to the stages. */
  async send(event: KinesisStreamEvent, stages: readonly string[] = ['by-key']): Promise<void> {
    await this.#untilDone(event)
    for (const stage of stages) for (const frames of this.ports.takeFrames(stage)) await this.#untilDone(frames)
  }

  async #untilDone({ Records }: KinesisStreamEvent): Promise<void> {
    const told: string[] = []
    this.answers.push(told)
    for (let from = 0, invocation = 0; from < Records.length; invocation++) {
      expect(invocation).toBeLessThan(mostInvocations)
      const answer = await this.#answer({ Records: Records.slice(from) })
      if (answer === 'rejected') {
        told.push(answer)
        continue
      }
      const [failure] = answer.batchItemFailures
      if (failure === undefined) return
      told.push(String(failure.itemIdentifier))
      from = Records.findIndex(({ kinesis }) => kinesis.sequenceNumber === failure.itemIdentifier)
      expect(from).toBeGreaterThanOrEqual(0)
    }
  }

  /** A rejection that says it may pass makes all of the batch come again. */
  async #answer(event: KinesisStreamEvent): Promise<StreamResponse | 'rejected'> {
    try {
      return await this.#handler(event, lambdaContext())
    } catch (error) {
      if (isRetryable(error)) return 'rejected'
      throw error
    }
  }
}

export const stores = [['memory'], ['DynamoDB']] as const
