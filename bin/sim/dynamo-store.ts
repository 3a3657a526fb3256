/** The production store of state tables over the model of DynamoDB: the SDK's commands, without the wire. */
import { type DynamoDBStatePort, DynamoDBStateStore } from '../../lib/aws/state-table/store.ts'
import type { DynamoOperationName } from '../../lib/emulator/dynamodb/index.ts'
import type { DynamoParts } from '../../lib/testing/simulator/stages.ts'

export function dynamoStore({ model, send, ...options }: DynamoParts): DynamoDBStateStore {
  const client: DynamoDBStatePort = {
    send: async (command: { readonly input: object; readonly constructor: { readonly name: string } }) => {
      const operation = command.constructor.name.replace('Command', '')
      const call = (input: object) => model.call(operation as DynamoOperationName, input as never) as object
      return (await send(operation, command.input, call)) as never
    },
  }
  return new DynamoDBStateStore({ ...options, client })
}
