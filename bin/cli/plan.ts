/** `millrace plan`: what a topology is and how it will be cut into functions. */
import { type Plan, plan, type StagePlan } from '../../lib/plan/plan.ts'
import type { Arguments, CommandSyntax } from './arguments.ts'
import { loadUserCode } from './user-code.ts'

export const planSyntax: CommandSyntax = {
  name: 'plan',
  positionals: ['TOPOLOGY'],
  summary: 'Prints a topology, the stages that it becomes and hints. TOPOLOGY is the file that exports it.',
  flags: { mermaid: { help: 'prints a Mermaid flowchart instead' } },
}

/** Throws a ConfigurationError for a topology that cannot run. */
export async function runPlan(args: Arguments, say: (line: string) => void): Promise<number> {
  const [file = ''] = args.positionals
  const { topology } = await loadUserCode(file)
  const planned = plan(topology)
  if (args.has('mermaid')) say(topology.describe('mermaid'))
  else for (const line of planLines(planned, topology.describe())) say(line)
  return 0
}

function planLines({ stages, hints }: Plan, description: string): readonly string[] {
  return [
    description,
    '',
    `${stages.length === 1 ? '1 stage, one Lambda function:' : `${stages.length} stages, one Lambda function each:`}`,
    ...stages.map(stageLine),
    ...(hints.length === 0 ? [] : ['', 'hints:', ...hints.map((hint) => `  ${hint}`)]),
  ]
}

function stageLine({ name, kind, sinks, tables }: StagePlan): string {
  const tableNames = tables.map((table) => `${table.name} (${table.kind})`)
  const reads = tableNames.length === 0 ? '' : `; enriched from ${tableNames.join(', ')}`
  return `  ${name}: ${kind}; writes to ${sinks.join(', ')}${reads}`
}
