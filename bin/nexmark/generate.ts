/** `npm run nexmark:generate -- --events N --seed S --out FILE [--disorder-ms D]`: writes a file of Nexmark events. */
import { deliveryOrder } from './delivery.ts'
import { defaultBaseTimeMs, defaultRate, EventMaker } from './event-at.ts'
import { CommandFlags, runCommand } from './flags.ts'
import { LineFile } from './line-file.ts'

const command = 'npm run nexmark:generate'
const flagTexts = [
  ['events', 'N', 'how many events'],
  ['seed', 'S', 'the same seed gives the same events, from 0 to 2^53 - 1'],
  ['out', 'FILE', 'where they go: one JSON object a line'],
  ['disorder-ms', 'D', 'holds each event back by less than D ms (default: 0, in the order of their times)'],
  ['rate', 'R', `events a second of event time (default: ${defaultRate})`],
  ['base-time', 'T', `event time of the first event (default: ${new Date(defaultBaseTimeMs).toISOString()})`],
] as const

/** How many events are made between two looks at the clock. */
const eventsPerLook = 4_096
const reportEveryMs = 1_000

function generate(): void {
  const flags = new CommandFlags(command, flagTexts, process.argv.slice(2))
  if (flags.help !== undefined) {
    console.log(flags.help)
    return
  }
  const options = {
    events: flags.whole('events', { least: 0, most: 1e12 }),
    seed: flags.whole('seed', { least: 0 }),
    disorderMs: flags.whole('disorder-ms', { least: 0, most: 86_400_000, otherwise: 0 }),
    rate: flags.whole('rate', { least: 1, most: 1_000_000, otherwise: defaultRate }),
    baseTimeMs: baseTime(flags),
  }
  const out = flags.text('out')
  const maker = new EventMaker(options)
  const file = new LineFile(out)
  const startMs = performance.now()
  let [written, reportedMs] = [0, startMs]
  for (const number of deliveryOrder(options)) {
    file.write(JSON.stringify(maker.eventAt(number)))
    if (++written % eventsPerLook === 0 && performance.now() >= reportedMs + reportEveryMs) {
      reportedMs = performance.now()
      console.error(`${written.toLocaleString('en')} of ${options.events.toLocaleString('en')} events`)
    }
  }
  file.close()
  const seconds = (performance.now() - startMs) / 1_000
  console.error(`${written.toLocaleString('en')} events in ${out}, ${seconds.toFixed(1)} s`)
}

function baseTime(flags: CommandFlags): number {
  const text = flags.optionalText('base-time')
  if (text === undefined) return defaultBaseTimeMs
  const timeMs = /^\d{4}-\d{2}-\d{2}T.*Z$/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(timeMs)) return timeMs
  throw flags.refusal(`--base-time ${text} is no time such as 2024-03-01T05:30:00Z.`)
}

await runCommand(generate)
