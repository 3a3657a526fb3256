/**
 * A state table behind the SDK's commands: the DynamoDB model itself, without the wire. Tests say what goes wrong: before
 * a call takes effect, after it, or in its answer.
 */
import {
  type DynamoDBStatePort,
  DynamoDBStateStore,
  type DynamoDBStateStoreOptions,
} from '../../../lib/aws/state-table/store.ts'
import {
  createDynamoModel,
  type DynamoFaults,
  type DynamoModel,
  type DynamoOperationName,
} from '../../../lib/emulator/dynamodb/index.ts'
import { stateTable } from '../../../lib/testing/state-table.ts'
import { InstantClock } from '../sink-worlds.ts'

export const tableName = 'by-hotel'

export interface SentCall {
  readonly operation: string
  readonly input: Readonly<Record<string, never>>
}

export class StateTable {
  readonly model: DynamoModel
  readonly clock = new InstantClock()
  readonly sent: SentCall[] = []
  /** Runs before a call takes effect: may throw or wait. */
  before: (call: SentCall) => unknown = () => undefined
  /** Runs after it: what is thrown takes the place of the answer. */
  after: (call: SentCall, answer: object) => unknown = () => undefined

  constructor(faults: DynamoFaults = {}) {
    this.model = createDynamoModel({ clock: { nowMs: () => Date.UTC(2026, 0, 1) }, faults })
    this.model.call('CreateTable', { TableName: tableName, ...stateTable })
  }

  readonly client: DynamoDBStatePort = {
    send: async (command: { readonly input: object; readonly constructor: { readonly name: string } }) => {
      const operation = command.constructor.name.replace('Command', '')
      const call = { operation, input: command.input as SentCall['input'] }
      this.sent.push(call)
      await this.before(call)
      const answer = this.model.call(operation as DynamoOperationName, call.input) as object
      await this.after(call, answer)
      return answer as never
    },
  }

  store(options: Partial<DynamoDBStateStoreOptions> = {}): DynamoDBStateStore {
    const { client, clock } = this
    return new DynamoDBStateStore({ client, clock, tableName, stage: 'by-hotel', random: () => 0.5, ...options })
  }

  /** Makes the next write take effect and its answer get lost. */
  loseNextAnswer(): void {
    this.after = ({ operation }) => {
      if (operation !== 'PutItem' && operation !== 'TransactWriteItems') return
      this.after = () => undefined
      throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
    }
  }
}
