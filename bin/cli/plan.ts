/** `millrace plan`: what a topology is and how it will be cut into functions. */
import { type KeyedStage, type Plan, plan, type StagePlan, streamNameOf, tableNameOf } from '../../lib/plan/plan.ts'
import { pollersCost } from '../../lib/plan/poller-cost.ts'
import { type Arguments, type CommandSyntax, usage } from './arguments.ts'
import type { Say } from './command.ts'
import { costLines, loadOf } from './plan-cost.ts'
import { loadUserCode } from './user-code.ts'

export const planSyntax: CommandSyntax = {
  name: 'plan',
  positionals: ['TOPOLOGY'],
  summary: 'Prints a topology, the stages that it becomes, warnings and hints. TOPOLOGY is the file that exports it.',
  flags: {
    mermaid: { help: 'prints a Mermaid flowchart instead' },
    cost: { help: 'prints what it costs on AWS in a month instead; needs --rate' },
    rate: { value: 'R', help: 'records a second of each source' },
    collapse: { value: 'C', help: 'records of a batch per key that it changes; 1 unless said' },
    'state-gb': { value: 'G', help: 'what all state tables hold, in GB; 1 unless said' },
    'poller-groups': {
      value: 'P',
      help: `groups of provisioned pollers of Kafka mappings, from $${Math.round(pollersCost(1).perMonth)} a month each; none unless said`,
    },
    'keyed-topics': { help: 'keyed stages read Kafka topics: counts no Kinesis for them; brokers are not priced' },
  },
}

/** Throws a ConfigurationError for a topology that cannot run. */
export async function runPlan(args: Arguments, say: Say): Promise<number> {
  const [file = ''] = args.positionals
  const forCost = ['rate', 'collapse', 'state-gb', 'poller-groups', 'keyed-topics'].find((flag) => args.has(flag))
  if (forCost !== undefined && !args.has('cost')) throw usage(`--${forCost} is for --cost: give that too.`)
  if (args.has('cost') && args.has('mermaid')) throw usage('--cost and --mermaid are two answers: give one of them.')
  const { topology } = await loadUserCode(file)
  const planned = plan(topology)
  if (args.has('keyed-topics') && !planned.stages.some(({ kind }) => kind === 'keyed'))
    throw usage(
      `--keyed-topics: topology "${planned.topology}" has no keyed stage, and so no topics of any: leave it out.`,
    )
  if (args.has('cost')) for (const line of costLines(planned, loadOf(args))) say(line)
  else if (args.has('mermaid')) say(topology.describe('mermaid'))
  else for (const line of planLines(planned, topology.describe())) say(line)
  return 0
}

/** The plan in words: the topology, each stage with what it reads, keeps and writes, warnings and hints. */
export function planLines({ topology, stages, warnings, hints }: Plan, description: string): readonly string[] {
  return [
    description,
    '',
    `${stages.length === 1 ? '1 stage, one Lambda function:' : `${stages.length} stages, one Lambda function each:`}`,
    ...stages.flatMap((stage) => stageLines(topology, stage)),
    ...headed('warnings:', warnings),
    ...headed('hints:', hints),
  ]
}

const headed = (head: string, lines: readonly string[]): readonly string[] =>
  lines.length === 0 ? [] : ['', head, ...lines.map((line) => `  ${line}`)]

function stageLines(topology: string, stage: StagePlan): readonly string[] {
  const tables = stage.tables.map((table) => `${table.name} (${table.kind})`)
  const parts = [
    stage.kind === 'keyed' ? `keyed, ${stage.slots} ${stage.slots === 1 ? 'slot' : 'slots'}` : stage.kind,
    ...listed('feeds', new Set(stage.feeds.map((feed) => feed.stage))),
    ...listed('writes to', stage.sinks),
    ...listed('enriched from', tables),
  ]
  const line = `  ${stage.name}: ${parts.join('; ')}`
  if (stage.kind === 'feeding') return [line, `    keeps its progress in table ${tableNameOf(topology, stage.name)}`]
  return stage.kind === 'keyed' ? [line, ...keyedLines(topology, stage)] : [line]
}

/** What a keyed stage reads and keeps, and the names of its stream and its table where nobody says otherwise. */
function keyedLines(topology: string, { name, fedBy, states, operatorStates }: KeyedStage): readonly string[] {
  const kept = [...states].map(([storedName, { kind }]) => `${storedName} (${kind})`)
  return [
    `    reads stream ${streamNameOf(topology, name)}, written by ${fedBy.join(', ')}`,
    `    keeps in table ${tableNameOf(topology, name)}, per key: ${kept.join(', ') || 'nothing'}`,
    ...listed('    keeps per slot:', operatorStates.keys()),
  ]
}

function listed(what: string, names: Iterable<string>): readonly string[] {
  const all = [...names]
  return all.length === 0 ? [] : [`${what} ${all.join(', ')}`]
}
