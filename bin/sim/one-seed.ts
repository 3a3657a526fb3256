/** `--seed N [--trace]`: one seed, with what it met and what the referees found. */
import type { Finding } from '../../lib/testing/simulator/findings.ts'
import type { Report } from '../../lib/testing/simulator/simulate.ts'
import { formatTrace, timeText } from '../../lib/testing/simulator/trace.ts'
import { play, type Service } from './play.ts'

/** How much of the trace is shown of a run that failed. */
const lastEvents = 40

export async function runOne(seed: number, traces: boolean, service: Service): Promise<number> {
  console.log(`seed ${seed}`)
  const report = await play(seed, { traces: true, service })
  if (traces) console.log(formatTrace(report.trace))
  else if (report.findings.length > 0) printLast(report)
  printSummary(report)
  printFindings(report.findings)
  if (report.findings.length === 0) console.log('every referee is content')
  else if (!traces)
    console.log(`\nnpm run sim -- --seed ${seed} --trace${service === 'kafka' ? ' --kafka' : ''} shows all of it`)
  return report.findings.length === 0 ? 0 : 1
}

/** The last events of a traced run. */
export function printLast({ trace }: Report): void {
  console.log(`the last ${Math.min(lastEvents, trace.length)} of ${trace.length} events:`)
  console.log(formatTrace(trace.slice(-lastEvents)))
}

export function printFindings(findings: readonly Finding[]): void {
  const widest = Math.max(0, ...findings.map(({ referee }) => referee.length))
  for (const { referee, message } of findings) console.log(`${referee.padEnd(widest)}  ${message}`)
}

function printSummary({ records, steps, virtualMs, met }: Report): void {
  console.log(`${records} records, ${steps} steps, ${timeText(virtualMs).trim()} virtual minutes`)
  const counts = [...met].filter(([, count]) => count > 0).sort(([a], [b]) => (a < b ? -1 : 1))
  console.log(counts.map(([name, count]) => `${name}: ${count}`).join(', '))
}
