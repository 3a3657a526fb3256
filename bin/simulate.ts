#!/usr/bin/env node
/** `npm run sim`: plays seeds of the simulator, one after the other or many at once, and canaries. docs/simulation.md. */
import { parseArgs } from 'node:util'
import { describeError } from '../lib/core/errors.ts'
import { breakPart, listCanaries } from './sim/canary-command.ts'
import { type Only, runMany } from './sim/many-seeds.ts'
import { runOne } from './sim/one-seed.ts'

const usage = `npm run sim -- --seed N [--trace]           plays one seed; with --trace prints all that happened
npm run sim -- --runs N [--from SEED] [--only time|keyed] [--json FILE]
                                              plays N seeds, fresh ones unless told from where
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
      help: { type: 'boolean', default: false },
    },
  })
  if (values.break === 'list') return listCanaries()
  if (values.break !== undefined) return breakPart(values.break)
  if (values.seed !== undefined) return runOne(wholeNumber('seed', values.seed), values.trace)
  if (values.runs !== undefined) {
    // Fresh seeds are printed first, so that a run that is broken off can be repeated.
    const from =
      values.from === undefined ? Math.floor(Date.now() / 1_000) % 1_000_000_000 : wholeNumber('from', values.from)
    const runs = wholeNumber('runs', values.runs)
    return runMany({ runs, from, only: application(values.only), json: values.json })
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
