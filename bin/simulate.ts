#!/usr/bin/env node
/** `npm run sim`: plays seeds of the simulator, one after the other or many at once, and canaries. docs/simulation.md. */
import { parseArgs } from 'node:util'
import { describeError } from '../lib/core/errors.ts'
import type { Only } from './sim/many-seeds.ts'

const usage = `npm run sim -- --seed N [--trace] [--kafka]  plays one seed; with --trace prints all that happened
npm run sim -- --runs N [--from SEED] [--only time|keyed] [--json FILE] [--kafka]
                                              plays N seeds, fresh ones unless told from where
                                              with --kafka on Kafka's log, commits and rebalances instead of Kinesis
npm run sim -- --break NAME                   breaks a part; exits non-zero when its referee notices
npm run sim -- --break list                   names the parts and what is broken`

function wholeNumber(name: string, text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text)
  throw new TypeError(`--${name} ${text} is not a whole number of at most ten digits`)
}

function application(text: string | undefined): Only | undefined {
  if (text === undefined || text === 'time' || text === 'keyed') return text
  throw new TypeError(`--only ${text}: say time, for seeds with windows and timers, or keyed, for those without`)
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string' },
      trace: { type: 'boolean', default: false },
      runs: { type: 'string' },
      from: { type: 'string' },
      only: { type: 'string' },
      json: { type: 'string' },
      break: { type: 'string' },
      kafka: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const service = values.kafka ? 'kafka' : 'kinesis'
  // Each command loads what it needs: of many seeds this process plays none, its workers do.
  if (values.break !== undefined) {
    const { breakPart, listCanaries } = await import('./sim/canary-command.ts')
    return values.break === 'list' ? listCanaries() : breakPart(values.break)
  }
  if (values.seed !== undefined) {
    const { runOne } = await import('./sim/one-seed.ts')
    return runOne(wholeNumber('seed', values.seed), values.trace, service)
  }
  if (values.runs !== undefined) {
    // Fresh seeds are printed first, so that a run that is broken off can be repeated.
    const from =
      values.from === undefined ? Math.floor(Date.now() / 1_000) % 1_000_000_000 : wholeNumber('from', values.from)
    const runs = wholeNumber('runs', values.runs)
    const { runMany } = await import('./sim/many-seeds.ts')
    return runMany({ runs, from, only: application(values.only), service, json: values.json })
  }
  console.log(usage)
  return values.help ? 0 : 2
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(`${describeError(error).message}\n\n${usage}`)
  process.exitCode = 2
}
