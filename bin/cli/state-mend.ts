/**
 * `millrace state mend`: makes the table of a keyed stage whole that was restored to a point in time. docs/operations.md has the way. Told the
 * stage, it also deletes the stage's mapping, which only a deployment makes anew: one that goes on where it stopped would leave records out.
 */
import { type DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb'
import { createDynamoDBClient } from '../../lib/aws/clients/dynamodb.ts'
import { mendRestoredTable } from '../../lib/aws/state-table/restored-table.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import { Closing } from '../../lib/local/closing.ts'
import { localDynamoDBClient } from '../../lib/local/run/tables.ts'
import { readGeneration } from '../../lib/runtime/progress/generation.ts'
import { type Arguments, type CommandSyntax, usage } from './arguments.ts'
import type { Say } from './command.ts'
import { type Operated, type OperatedStage, stageIn } from './operate/operated.ts'
import { openStack } from './operate/operated-stack.ts'
import { counted } from './words.ts'

const firstAnswerMs = 15_000
/** No stream keeps its records for more than 365 days: whoever reads from before that begins with the oldest. */
const aboveRetentionMs = 366 * 86_400_000

const mendSyntax: CommandSyntax = {
  name: 'state mend',
  positionals: ['TABLE'],
  summary:
    'Makes a restored table of a keyed stage whole. TABLE was restored to the moment to go back to, and nothing uses it yet.',
  flags: {
    earlier: { value: 'TABLE', help: 'the same table, restored to a moment a minute or more earlier; only read' },
    stack: { value: 'NAME', help: 'the CloudFormation stack of the stage, whose mapping is deleted then' },
    stage: { value: 'NAME', help: 'with --stack: the stage that is to go on with TABLE; it must be paused' },
    application: { value: 'NAME', help: 'with --stack: the topology, where the stack holds several' },
    endpoint: { value: 'URL', help: 'where the tables are (default: AWS, as the environment says)' },
  },
}

export const mendCommand = { syntax: mendSyntax, run: runMend }

async function runMend(args: Arguments, say: Say): Promise<number> {
  const [tableName = ''] = args.positionals
  const earlierTableName = args.text('earlier')
  if (earlierTableName === undefined) throw usage('`millrace state mend` needs --earlier.')
  if (earlierTableName === tableName) throw usage('--earlier is to be another table than the one that is mended.')
  if (args.has('stack') !== args.has('stage')) throw usage('--stack and --stage go together.')
  if (args.has('application') && !args.has('stack')) throw usage('--application goes with --stack.')
  const endpoint = args.text('endpoint')
  const closing = new Closing()
  try {
    const client = endpoint === undefined ? createDynamoDBClient() : localDynamoDBClient(endpoint)
    closing.defer(() => client.destroy())
    for (const name of [tableName, earlierTableName]) await checkAnswers(client, name)
    const deployed = await stoppedStage(args, [tableName, earlierTableName], closing)
    const { keys, partitions, dueEntries } = await mendRestoredTable({
      client,
      clock: systemClock,
      tableName,
      earlierTableName,
      ...(deployed && { generation: deployed.generation }),
    })
    const whole = `${tableName} is whole: ${counted(keys, 'key')} as they are, progress of ${counted(partitions, 'partition')} from ${earlierTableName}, ${counted(dueEntries, 'timer')} found again.`
    if (deployed === undefined) say(`${whole} Let the stage read its stream from its beginning.`)
    else {
      say(whole)
      for (const line of await deployed.operated.rewind(deployed.stage.name, systemClock.nowMs() - aboveRetentionMs))
        say(line)
    }
    return 0
  } catch (error) {
    if (error instanceof ConfigurationError) throw error
    const { message } = describeError(error)
    throw new ConfigurationError(
      `${tableName} is not whole yet: ${message.split('\n')[0]}. \`millrace state mend\` can be run again.`,
      { cause: error },
    )
  } finally {
    await closing.close()
  }
}

/** The keyed stage that is to go on with the restored table; undefined where none is named. Throws a ConfigurationError while it may still run. */
async function stoppedStage(
  args: Arguments,
  restored: readonly string[],
  closing: Closing,
): Promise<{ readonly operated: Operated; readonly stage: OperatedStage; readonly generation: number } | undefined> {
  const stack = args.text('stack')
  if (stack === undefined) return undefined
  const place = { stack, application: args.text('application'), endpoint: args.text('endpoint') }
  const operated = await openStack(place, closing)
  const stage = stageIn(operated, args.text('stage') ?? '')
  if (stage.kind !== 'keyed' || stage.state === undefined) {
    throw new ConfigurationError(`Stage "${stage.name}" keeps no keys, so its table need not be restored.`)
  }
  const used = stage.state.tableName.split('/').at(-1) ?? ''
  if (restored.includes(used)) {
    throw new ConfigurationError(
      `Stage "${stage.name}" uses the table ${used}: give two restored tables that nothing uses yet, and deploy the mended one afterwards.`,
    )
  }
  const state = (await operated.mappingStates()).get(stage.name)
  if (state !== 'Disabled' && state !== 'Missing') {
    throw new ConfigurationError(
      `The mapping of stage "${stage.name}" is ${state}: \`millrace pause ${operated.flags} --stage ${stage.name}\` first.`,
    )
  }
  const { generation } = await readGeneration(stage.state.store, stage.name, AbortSignal.timeout(firstAnswerMs))
  return { operated, stage, generation }
}

/** What does not answer at all would be asked again and again. */
async function checkAnswers(client: DynamoDBClient, TableName: string): Promise<void> {
  try {
    await client.send(new ScanCommand({ TableName, Limit: 1 }), { abortSignal: AbortSignal.timeout(firstAnswerMs) })
  } catch (error) {
    const { name, message } = describeError(error)
    throw new ConfigurationError(`The table ${TableName} cannot be read: ${name}: ${message.split('\n')[0]}.`, {
      cause: error,
    })
  }
}
