/** DynamoDB as the contenders see it: the model, which counts units, or a service that takes everything at once. */
import { DynamoDBStateStore } from '../../lib/aws/state-table/store.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { createDynamoModel, type DynamoModel, type DynamoOperationName } from '../../lib/emulator/dynamodb/index.ts'
import type { Units } from './prices.ts'

type Command = { readonly input: object; readonly constructor: { readonly name: string } }

/** What is needed of a `DynamoDBClient`, by Powertools too, which looks whether it is one. */
export interface BenchClient {
  send(command: Command): Promise<never>
  readonly config: { readonly serviceId: 'DynamoDB' }
  readonly middlewareStack: { identify(): readonly string[]; use(): void; addRelativeTo(): void }
}

const clientOf = (send: BenchClient['send']): BenchClient => ({
  send,
  config: { serviceId: 'DynamoDB' },
  middlewareStack: { identify: () => [], use: () => undefined, addRelativeTo: () => undefined },
})

/** The model in this process, without HTTP. */
export const clientOver = (model: DynamoModel): BenchClient =>
  clientOf(async (command) => model.call(operationOf(command), command.input as never) as never)

const operationOf = (command: Command) => command.constructor.name.replace('Command', '') as DynamoOperationName

/** Answers every write at once and keeps nothing: what remains is the caller's own work. */
export const boundless: BenchClient = clientOf(async () => ({}) as never)

/** The tables of the keyed stage and of the stage that feeds it. */
export const stateTable = 'by-user'
export const feedingTable = 'clicks'
export const countTable = 'counts'
export const idempotencyTable = 'idempotency'

/** Tables in the model, with the units that each operation took. */
export class MeteredTables {
  readonly #model = createDynamoModel({ clock: systemClock })
  readonly #keyReads: Units[] = []

  constructor() {
    this.#create(stateTable, 'pk', 'sk')
    this.#create(feedingTable, 'pk', 'sk')
    this.#create(countTable, 'user')
    this.#create(idempotencyTable, 'id')
  }

  #create(TableName: string, ...names: readonly string[]): void {
    this.#model.call('CreateTable', {
      TableName,
      AttributeDefinitions: names.map((AttributeName) => ({ AttributeName, AttributeType: 'S' as const })),
      KeySchema: names.map((AttributeName, i) => ({ AttributeName, KeyType: i === 0 ? 'HASH' : 'RANGE' })),
      BillingMode: 'PAY_PER_REQUEST',
    })
  }

  readonly client: BenchClient = clientOf(async (command) => {
    const operation = operationOf(command)
    const before = this.units(stateTable)
    const answer = this.#model.call(operation, command.input as never)
    if (operation === 'BatchGetItem') this.#keyReads.push(lessOf(this.units(stateTable), before))
    return answer as never
  })

  /** The production store over the table of a stage. */
  store(tableName: string): DynamoDBStateStore {
    const { client } = this
    return new DynamoDBStateStore({ client, tableName, stage: tableName, clock: systemClock })
  }

  /** The stores of a keyed stage and of the stage that feeds it. */
  stores() {
    return { store: this.store(stateTable), feedingStore: this.store(feedingTable) }
  }

  /** All that was used of a table so far. */
  units(...tables: readonly string[]): Units {
    return tables.map((name) => this.#model.consumedUnits(name)).reduce(sumOf)
  }

  /** What a piece of work uses of some tables. */
  async unitsOf(work: () => Promise<unknown>, ...tables: readonly string[]): Promise<Units> {
    const before = this.units(...tables)
    await work()
    return lessOf(this.units(...tables), before)
  }

  /** Read units of key items, those of progress left out, since the last call. */
  takeKeyReads(): number {
    return this.#keyReads.splice(0).reduce((sum, { read }) => sum + read, 0)
  }
}

export const sumOf = (a: Units, b: Units): Units => ({ read: a.read + b.read, write: a.write + b.write })
const lessOf = (a: Units, b: Units): Units => ({ read: a.read - b.read, write: a.write - b.write })
