/** The demo of the five classic uses of keyed state: each as a local run of its own, one after the other. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Figure } from '../../../bench/figures.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { grouped, table } from '../../../lib/local/display/run-display.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'
import { KeyedRun } from '../tables/keyed-run.ts'
import { classicUses, type Part, type Use } from './uses.ts'

export interface ClassicsSettings {
  readonly events: number
  readonly keys: number
  readonly seed: number
}

interface Outcome {
  readonly use: Use
  readonly lines: number
  readonly sent: number
  readonly outputs: number
  /** Facts that are missing, and facts that should not be. */
  readonly wrong: number
  readonly deadLetters: number
  readonly ms: number
}

const root = join(import.meta.dirname, '../../..')
const mostLines = 40
const { nowMs } = systemClock

/** Runs the demo and resolves with its figures. */
export async function runClassics(
  { events, keys, seed }: ClassicsSettings,
  signal: AbortSignal,
): Promise<readonly Figure[]> {
  console.log(
    `Five uses of keyed state, each with ${grouped(events)} events over ${grouped(keys)} keys, drawn from the seed ${seed}, on the deployed handler.\n`,
  )
  const outcomes: Outcome[] = []
  for (const use of classicUses(new Random(seed), events, keys)) {
    if (signal.aborted) break
    const outcome = await runUse(use)
    outcomes.push(outcome)
    console.log(
      `${use.name}: ${grouped(outcome.sent)} records in, ${grouped(outcome.outputs)} outputs, ${outcome.wrong} wrong`,
    )
  }
  console.log(['', ...outcomeLines(outcomes)].join('\n'))
  return outcomes.flatMap(({ use: { name }, wrong, deadLetters, lines }): Figure[] => [
    { name: `${name}: wrong or missing results`, value: wrong, unit: '', goal: 0, better: 'exactly' },
    { name: `${name}: dead letters`, value: deadLetters, unit: '', goal: 0, better: 'exactly' },
    { name: `${name}: user code`, value: lines, unit: 'lines', goal: mostLines - 1, better: 'lower' },
  ])
}

async function runUse(use: Use): Promise<Outcome> {
  const startedAtMs = nowMs()
  const directory = `.millrace/demo-classics/${use.folder}`
  const folder = `functions/classics/${use.folder}`
  const outputs = new Map<string, unknown[]>()
  const run = await KeyedRun.open({ topology: use.topology, entry: `${folder}/handler.ts`, directory, shards: 2 })
  try {
    await run.start({
      fresh: true,
      onOutput: (output, records) => {
        const values = records.map(({ data }) => JSON.parse(Buffer.from(data).toString()) as unknown)
        outputs.set(output, [...(outputs.get(output) ?? []), ...values])
      },
    })
    for (const part of use.parts) await sendPart(run, part)
  } finally {
    await run.close()
  }
  const found = use.facts(outputs)
  return {
    use,
    lines: linesOf(`${folder}/topology.ts`),
    sent: use.parts.reduce((sum, { values }) => sum + values.length, 0),
    outputs: [...outputs.values()].reduce((sum, values) => sum + values.length, 0),
    wrong: missingFrom(found, use.expected) + missingFrom(use.expected, found),
    deadLetters: run.deadLetters.length,
    ms: nowMs() - startedAtMs,
  }
}

const missingFrom = (found: ReadonlySet<string>, wanted: ReadonlySet<string>): number =>
  [...wanted].filter((fact) => !found.has(fact)).length

async function sendPart(run: KeyedRun, { source, key, values }: Part): Promise<void> {
  await run.send(
    source,
    values.map((value) => ({ partitionKey: key(value as never), value })),
  )
  await run.settle()
}

/** Lines that are not empty, comments and imports included. */
const linesOf = (file: string): number =>
  readFileSync(join(root, file), 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '').length

function outcomeLines(outcomes: readonly Outcome[]): readonly string[] {
  const head = ['use', 'lines', 'records in', 'outputs', 'results compared', 'wrong', 'time']
  const rows = outcomes.map(({ use, lines, sent, outputs, wrong, ms }) => [
    ...[use.name, ...[lines, sent, outputs, use.expected.size, wrong].map(grouped), `${(ms / 1_000).toFixed(1)} s`],
  ])
  return table([head, ...rows], [false, true, true, true, true, true, true])
}
