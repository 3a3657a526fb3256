/** What `millrace plan --cost` says: dollars a month by part, and when Managed Flink would be cheaper. */
import { grouped, table } from '../../lib/local/display/run-display.ts'
import { assumptions, costOf, flinkIsCheaperFrom, type Load } from '../../lib/plan/cost.ts'
import type { Plan } from '../../lib/plan/plan.ts'
import { pricesAsOf } from '../../lib/plan/prices.ts'
import { type Arguments, usage } from './arguments.ts'

/** Throws a ConfigurationError (code `usage`) where the load is missing or is none. */
export function loadOf(args: Arguments): Load {
  const rate = numberOf(args, 'rate', 0)
  if (rate === undefined) throw usage('--cost needs --rate, the records a second of each source.')
  const pollerGroups = numberOf(args, 'poller-groups', 1)
  return {
    rate,
    collapse: numberOf(args, 'collapse', 1) ?? 1,
    stateGb: numberOf(args, 'state-gb', 0) ?? 1,
    ...(pollerGroups === undefined ? {} : { pollerGroups }),
    ...(args.has('keyed-topics') ? { keyedLogs: 'topics' } : {}),
  }
}

function numberOf(args: Arguments, flag: string, least: number): number | undefined {
  const text = args.text(flag)
  if (text === undefined) return undefined
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (value >= least) return value
  throw usage(`--${flag} ${text} is not a number from ${least} on.`)
}

export function costLines(planned: Plan, load: Load): readonly string[] {
  const { parts, atRest, atRate, flink } = costOf(planned, load)
  const rows = [
    ['dollars a month', 'at rest', `at ${rateText(load.rate)}`],
    ...parts.map((part) => [part.part, dollars(part.atRest), dollars(part.atRate)]),
    ['all', dollars(atRest), dollars(atRate)],
    ['Managed Flink', '', dollars(flink)],
  ]
  return [
    ...table(rows, [false, true, true]),
    '',
    flinkLine(flinkIsCheaperFrom(planned, load)),
    ...(load.keyedLogs === 'topics' ? [topicsLine(load)] : []),
    `us-east-1, prices of ${pricesAsOf}, no free tier; collapse ${load.collapse}, ${load.stateGb} GB of state, records of ${assumptions.recordKb} KB, every record passed on to every stage. The sources' and sinks' own streams are not part of it. docs/cli.md of the package has the other assumptions.`,
  ]
}

const rateText = (rate: number): string => `${rate < 10 ? rate : grouped(rate)}/s`
const dollars = (amount: number): string =>
  amount.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })

/** What stands in place of streams that are not there. */
function topicsLine({ pollerGroups }: Load): string {
  const pollers =
    pollerGroups === undefined
      ? 'on demand, which cost nothing of their own (--poller-groups counts provisioned ones)'
      : 'counted as provisioned, in the groups that were said'
  return `Keyed stages read Kafka topics, so no Kinesis is counted: their pollers are ${pollers}, and what the cluster charges for brokers and what they keep is not priced.`
}

function flinkLine(rate: number | undefined): string {
  const assumed = `where one of its units takes ${grouped(assumptions.flinkRecordsPerKpuSecond)} records a second`
  if (rate === undefined)
    return `Managed Flink is not cheaper at any rate up to a million a second of each source, ${assumed}.`
  if (rate === 0) return `Managed Flink is cheaper at any rate, ${assumed}.`
  return `Managed Flink is cheaper from about ${rateText(Number(rate.toPrecision(2)))} of each source on, ${assumed}.`
}
