/** The real handler of a topology with keyed stages, on either store, invoked as Lambda does: what is not done comes again. */
import type { KinesisStreamEvent } from 'aws-lambda'
import { streamHandler } from '../../lib/aws/stream-handler.ts'
import { plan, stateOf } from '../../lib/plan/plan.ts'
import type { StateStore } from '../../lib/state/state-store.ts'
import { lambdaContext } from '../../lib/testing/events.ts'
import { type MemoryPorts, memoryPorts } from '../../lib/testing/memory-ports.ts'
import type { Topology } from '../../lib/topology/topology.ts'
import { StateTable } from '../aws/state-table.ts'

const mostInvocations = 20

export class StageOnTable {
  readonly ports: MemoryPorts
  /** What the handler answered for the events of each batch, in order. */
  readonly answers: string[][] = []
  readonly #handler: ReturnType<typeof streamHandler>

  constructor(app: Topology, store: 'memory' | 'DynamoDB') {
    const memory = memoryPorts()
    const planned = plan(app)
    const tables = new Map<string, StateStore>()
    for (const { name, kind } of planned.stages) {
      if (kind === 'keyed') tables.set(name, new StateTable().store({ stage: name }))
    }
    const onTables = (stage: string): StateStore | undefined => tables.get(stateOf(planned, stage) ?? '')
    const state = store === 'memory' ? memory.state : onTables
    this.ports = {
      ...memory,
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
      const { batchItemFailures } = await this.#handler({ Records: Records.slice(from) }, lambdaContext())
      const [failure] = batchItemFailures
      if (failure === undefined) return
      told.push(String(failure.itemIdentifier))
      from = Records.findIndex(({ kinesis }) => kinesis.sequenceNumber === failure.itemIdentifier)
      expect(from).toBeGreaterThanOrEqual(0)
    }
  }
}

export const stores = [['memory'], ['DynamoDB']] as const
