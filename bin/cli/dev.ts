/** `millrace dev`: any topology with its real handler on this machine, reloaded with every save. */
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError } from '../../lib/core/errors.ts'
import { Closing } from '../../lib/local/closing.ts'
import { plan } from '../../lib/plan/plan.ts'
import { type Arguments, type CommandSyntax, usage } from './arguments.ts'
import { DevDisplay } from './dev-display.ts'
import { devInputs } from './dev-input.ts'
import { type DevOptions, startDevRun } from './dev-run.ts'
import { tablesIn } from './dev-tables.ts'
import { interruption } from './interruption.ts'
import { directoryOf } from './local-run.ts'
import { handlerBeside, loadUserCode } from './user-code.ts'

export const devSyntax: CommandSyntax = {
  name: 'dev',
  positionals: ['TOPOLOGY'],
  summary:
    'Runs a topology with its real handler on this machine and reloads it with every save. TOPOLOGY is the file that exports it.',
  flags: {
    input: {
      value: 'FILE',
      many: true,
      help: 'NDJSON, one value a line; - is the standard input; SOURCE=FILE where there are several sources',
    },
    source: { value: 'NAME', help: 'the source that --input is for (default: the only one)' },
    handler: { value: 'FILE', help: 'the file that exports the handler (default: handler.ts beside the topology)' },
    shards: { value: 'N', help: 'shards of each source stream that does not exist yet (default: 1)' },
    port: { value: 'N', help: 'port of the embedded Kinesis on 127.0.0.1 (default: any free one)' },
    endpoint: {
      value: 'URL',
      help: 'an endpoint that speaks Kinesis and DynamoDB, such as LocalStack, instead of the embedded ones',
    },
    table: {
      value: 'SINK=KEY[,SORTKEY]',
      many: true,
      help: 'makes this sink a DynamoDB table with that partition key; a key of numbers is KEY:N (default: a stream)',
    },
    fresh: { help: 'drops the state of earlier runs first' },
    once: { help: 'the end of the input is its end: windows close and timers fire, and the command ends' },
  },
}

const tickMs = 100

/** Runs until Ctrl-C or, with `once`, until all input is processed; the exit code is 1 where no line of it could be. */
export async function runDev(args: Arguments): Promise<number> {
  const options = await devOptions(args)
  const closing = new Closing()
  const display = new DevDisplay(process.stdout, systemClock.nowMs)
  const signal = interruption(process, systemClock.nowMs, () => {
    display.say('Stopping: what is in flight is finished and the position is saved. Ctrl-C again stops at once.')
  })
  try {
    const run = await startDevRun(options, display, closing, signal)
    while (!signal.aborted) {
      await systemClock.sleep(tickMs, signal)
      await run.tick()
      display.show(run.view)
      if (options.once && run.isSettled) break
    }
    display.keep(run.view)
    return options.once && run.isSettled && run.hasFailed ? 1 : 0
  } finally {
    await closing.close()
  }
}

async function devOptions(args: Arguments): Promise<DevOptions> {
  const [topologyFile = ''] = args.positionals
  const handlerFile = args.text('handler') ?? handlerBeside(topologyFile)
  const shards = args.integer('shards', 1, 64, 1)
  const port = args.integer('port', 0, 65_535, 0)
  const endpoint = args.text('endpoint')
  if (args.has('source') && !args.has('input')) throw usage('--source says what --input is for: give --input, too.')
  const code = await loadUserCode(topologyFile, handlerFile)
  const { graph } = plan(code.topology)
  const sources = graph.sources.map(({ name }) => name)
  const sinks = graph.sinks.map(({ name }) => name)
  const tables = tablesIn(args.texts('table'), sinks)
  const inputs = await devInputs(args.texts('input'), args.text('source'), sources)
  if (args.has('once') && inputs.length === 0)
    throw new ConfigurationError('--once waits for input: give --input.', { code: 'usage' })
  return {
    topologyFile,
    handlerFile,
    code,
    directory: directoryOf(code.topology.name),
    inputs,
    shards,
    port,
    endpoint,
    tables,
    fresh: args.has('fresh'),
    once: args.has('once'),
  }
}
