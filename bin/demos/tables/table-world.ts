/**
 * A topology with its real handler, its state in the model of DynamoDB, and everything else in memory, on a virtual clock: for demos
 * and tests that look at what the table holds and costs.
 *
 * 1. The state store is the one of production, with the SDK's commands; the model answers them and reports what they cost.
 * 2. Each send is one batch of the source and, in each keyed stage, one batch per shard.
 */
import type { KinesisStreamEvent } from 'aws-lambda'
import { type DynamoDBStatePort, DynamoDBStateStore } from '../../../lib/aws/state-table/store.ts'
import { invariant } from '../../../lib/core/errors.ts'
import {
  type ConsumedCapacity,
  createDynamoModel,
  type DynamoModel,
  type DynamoOperationName,
  type Item,
} from '../../../lib/emulator/dynamodb/index.ts'
import { type SourceHandle, type StreamHandlerOptions, streamHandler, type Topology } from '../../../lib/index.ts'
import { type Plan, plan, stageNamed, tableNameOf } from '../../../lib/plan/plan.ts'
import { kinesisEvent, lambdaContext, type MemoryPorts, memoryPorts, VirtualClock } from '../../../lib/testing/index.ts'
import { stateTable } from '../../../lib/testing/state-table.ts'

/** One operation on a state table, and what DynamoDB says that it consumed. */
export interface TableCall {
  readonly table: string
  readonly operation: string
  /** Whether it is about the states of keys; else it is about the runner's progress or its manifest. */
  readonly isOfKeys: boolean
  readonly units: number
}

export interface TableWorldOptions extends Omit<StreamHandlerOptions, 'ports' | 'sinks'> {
  /** Where the clock starts, ms since 1970 UTC. @default 2026-01-01T00:00:00Z */
  readonly nowMs?: number
  /** Whether the tables have streams, of old and new images. @default they have none */
  readonly withStreams?: boolean
}

/**
 * @example
 * const world = new TableWorld(mapStateApp)
 * await world.send(movements, [movement])
 * world.calls.reduce((units, call) => units + call.units, 0)
 */
export class TableWorld {
  readonly clock: VirtualClock
  readonly model: DynamoModel
  readonly ports: MemoryPorts
  /** The client that the state stores use: anything that reads the tables may share it. */
  readonly client: DynamoDBStatePort
  /** What was called since `calls` was emptied last. */
  readonly calls: TableCall[] = []
  readonly #plan: Plan
  readonly #handler: ReturnType<typeof streamHandler>
  readonly #sent = new Map<string, number>()

  constructor(topology: Topology, { nowMs, withStreams = false, ...options }: TableWorldOptions = {}) {
    this.clock = new VirtualClock(nowMs)
    this.model = createDynamoModel({ clock: this.clock })
    this.ports = memoryPorts({ clock: this.clock })
    this.client = this.#client()
    this.#plan = plan(topology)
    for (const { kind, name } of this.#plan.stages) {
      if (kind !== 'stateless') this.#createTable(name, withStreams && kind === 'keyed')
    }
    const stores = new Map<string, DynamoDBStateStore>()
    const state = (stage: string): DynamoDBStateStore | undefined => {
      if (stageNamed(this.#plan, stage).kind === 'stateless') return undefined
      const store = stores.get(stage) ?? this.#store(stage)
      stores.set(stage, store)
      return store
    }
    this.#handler = streamHandler(topology, { ...options, ports: { ...this.ports, state } })
  }

  tableOf(stage: string): string {
    return tableNameOf(this.#plan.topology, stageNamed(this.#plan, stage).name)
  }

  /** Sends values to a source, and runs all stages that they reach. Throws where anything was not done. */
  async send<I>(source: SourceHandle<I>, values: readonly I[]): Promise<void> {
    const firstIndex = this.#sent.get(source.name) ?? 0
    this.#sent.set(source.name, firstIndex + values.length)
    const arrivalTimeMs = this.clock.nowMs()
    await this.#invoke(kinesisEvent(values, { source: { name: source.name }, firstIndex, arrivalTimeMs }))
    for (const { kind, name } of this.#plan.stages) {
      if (kind !== 'keyed') continue
      for (const event of this.ports.takeFrames(name)) await this.#invoke(event)
    }
    invariant(this.ports.deadLettered.length === 0, 'a record of a demo became a dead letter')
  }

  async #invoke(event: KinesisStreamEvent): Promise<void> {
    const { batchItemFailures } = await this.#handler(event, lambdaContext())
    invariant(
      batchItemFailures.length === 0,
      `a batch of a demo was not done: ${JSON.stringify(this.ports.lines.at(-1))}`,
    )
  }

  #store(stage: string): DynamoDBStateStore {
    return new DynamoDBStateStore({
      client: this.client,
      tableName: this.tableOf(stage),
      stage,
      clock: this.clock,
      random: () => 0.5,
      // Asking for the capacity makes DynamoDB tell; what it told is noted by the client.
      onCapacity: () => undefined,
    })
  }

  #createTable(stage: string, withStream: boolean): void {
    const TableName = this.tableOf(stage)
    this.model.call('CreateTable', {
      TableName,
      ...stateTable,
      ...(withStream ? { StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' } } : {}),
    })
    const TimeToLiveSpecification = { AttributeName: 'ttl', Enabled: true }
    this.model.call('UpdateTimeToLive', { TableName, TimeToLiveSpecification })
  }

  #client(): DynamoDBStatePort {
    return {
      send: async (command: { readonly input: object; readonly constructor: { readonly name: string } }) => {
        const operation = command.constructor.name.replace('Command', '')
        const answer = this.model.call(operation as DynamoOperationName, command.input as never)
        this.#note(operation, command.input, answer as Consuming)
        return answer as never
      },
    }
  }

  #note(operation: string, input: object, { ConsumedCapacity: consumed = [] }: Consuming): void {
    const isOfKeys = JSON.stringify(input).includes('"key#')
    for (const { TableName: table = '', CapacityUnits: units = 0 } of [consumed].flat()) {
      this.calls.push({ table, operation, isOfKeys, units })
    }
  }
}

interface Consuming {
  readonly ConsumedCapacity?: ConsumedCapacity | ConsumedCapacity[]
}

/** The items of a table, as a scan has them. */
export function itemsOf(model: DynamoModel, table: string): readonly Item[] {
  const items: Item[] = []
  let after: Item | undefined
  do {
    const page = model.call('Scan', { TableName: table, ExclusiveStartKey: after })
    items.push(...(page.Items ?? []))
    after = page.LastEvaluatedKey
  } while (after !== undefined)
  return items
}
