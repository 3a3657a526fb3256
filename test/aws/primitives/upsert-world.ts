/** A table of users behind the SDK's commands: the DynamoDB model itself, without the wire, with faults by plan. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import type { UpsertTable } from '../../../lib/aws/primitives/upsert-once.ts'
import { createDynamoModel, type DynamoOperationName } from '../../../lib/emulator/dynamodb/index.ts'
import { awsError, InstantClock } from '../sink-worlds.ts'

const TableName = 'visits'

type Item = Record<string, AttributeValue>
type Hook = (operation: string) => unknown

export class UpsertWorld {
  readonly clock = new InstantClock()
  readonly sent: string[] = []
  readonly #model = createDynamoModel({ clock: { nowMs: () => 0 } })
  #before: Hook[] = []
  #after: Hook[] = []
  #repeatsPut = false

  constructor() {
    this.#model.call('CreateTable', {
      TableName,
      AttributeDefinitions: [{ AttributeName: 'user', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'user', KeyType: 'HASH' }],
      BillingMode: 'PAY_PER_REQUEST',
    })
  }

  get table(): UpsertTable {
    const send = async (command: { readonly input: object; readonly constructor: { readonly name: string } }) => {
      const operation = command.constructor.name.replace('Command', '')
      this.sent.push(operation)
      for (const hook of this.#before) await hook(operation)
      const call = () => this.#model.call(operation as DynamoOperationName, command.input as never)
      if (operation === 'PutItem' && this.#repeatsPut) {
        this.#repeatsPut = false
        call()
      }
      const answer = call()
      for (const hook of this.#after) await hook(operation)
      return answer as never
    }
    return { client: { send }, tableName: TableName, clock: this.clock, random: () => 0.5 }
  }

  /** Makes the next call of an operation fail, before it takes effect or after. */
  failNext(operation: string, when: 'before' | 'after', error: () => Error): void {
    this.#once(when, operation, () => {
      throw error()
    })
  }

  /** Does something between a call's read and its write. */
  beforeNextPut(work: () => unknown): void {
    this.#once('before', 'PutItem', work)
  }

  /** Makes the next write take effect twice, as where a client repeats what it had no answer for. */
  repeatNextPut(): void {
    this.#repeatsPut = true
  }

  /** Lets calls overtake each other, fail before or after their effect, and crash whoever made them. */
  disturb(draw: () => number): void {
    const pause = async () => {
      for (let turns = draw() % 5; turns > 0; turns--) await Promise.resolve()
    }
    const errors = [
      () => awsError('ThrottlingException'),
      () => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }),
      () => awsError('AccessDeniedException'),
    ]
    const hook = async () => {
      await pause()
      const error = errors[draw() % 12]
      if (error) throw error()
    }
    this.#before.push(hook)
    this.#after.push(hook)
  }

  put(Item: Item): void {
    this.#model.call('PutItem', { TableName, Item: Item as never })
  }

  delete(Key: Item): void {
    this.#model.call('DeleteItem', { TableName, Key: Key as never })
  }

  readonly items = (): readonly Item[] => (this.#model.call('Scan', { TableName }).Items ?? []) as unknown as Item[]

  row(user: string): Item | undefined {
    return this.items().find((item) => item.user?.S === user)
  }

  readonly units = () => this.#model.consumedUnits(TableName)

  #once(when: 'before' | 'after', operation: string, work: () => unknown): void {
    const hooks = when === 'before' ? this.#before : this.#after
    const hook: Hook = (sent) => {
      if (sent !== operation) return undefined
      hooks.splice(hooks.indexOf(hook), 1)
      return work()
    }
    hooks.push(hook)
  }
}
