/** `millrace state mend`: makes the table of a keyed stage whole that was restored to a point in time. docs/operations.md has the way. */
import { createDynamoDBClient } from '../../lib/aws/dynamodb-client.ts'
import { mendRestoredTable } from '../../lib/aws/restored-table.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { Closing } from '../../lib/local/closing.ts'
import { localDynamoDBClient } from '../../lib/local/local-tables.ts'
import { type Arguments, type CommandSyntax, usage } from './arguments.ts'
import { counted } from './words.ts'

const mendSyntax: CommandSyntax = {
  name: 'state mend',
  positionals: ['TABLE'],
  summary:
    'Makes a restored table of a keyed stage whole. TABLE was restored to the moment to go back to, and nothing uses it yet.',
  flags: {
    earlier: { value: 'TABLE', help: 'the same table, restored to a moment a minute or more earlier; only read' },
    endpoint: { value: 'URL', help: 'where the tables are (default: AWS, as the environment says)' },
  },
}

export const mendCommand = { syntax: mendSyntax, run: runMend }

async function runMend(args: Arguments, say: (line: string) => void): Promise<number> {
  const [tableName = ''] = args.positionals
  const earlierTableName = args.text('earlier')
  if (earlierTableName === undefined) throw usage('`millrace state mend` needs --earlier.')
  if (earlierTableName === tableName) throw usage('--earlier is to be another table than the one that is mended.')
  const endpoint = args.text('endpoint')
  const closing = new Closing()
  try {
    const client = endpoint === undefined ? createDynamoDBClient() : localDynamoDBClient(endpoint)
    closing.defer(() => client.destroy())
    const { keys, partitions, dueEntries } = await mendRestoredTable({
      client,
      clock: systemClock,
      tableName,
      earlierTableName,
    })
    say(
      `${tableName} is whole: ${counted(keys, 'key')} as they are, progress of ${counted(partitions, 'partition')} from ${earlierTableName}, ${counted(dueEntries, 'timer')} found again. Let the stage read its stream from its beginning.`,
    )
    return 0
  } finally {
    await closing.close()
  }
}
