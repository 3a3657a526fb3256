/** `npm run demo:table-first`: other consumers read the state, by lookups and by its changelog, and cost no second copy. */
import { runDemo } from './demo.ts'
import { readFlags } from './flags.ts'
import { runTableFirst } from './table-first/run.ts'

const command = 'npm run demo:table-first'
const about = 'Keeps accounts in the table of a stage, and lets two other consumers read them.'

const readOwnFlags = () =>
  readFlags(
    command,
    about,
    {
      bookings: { least: 1, most: 100_000, value: 2_000, help: 'bookings                    (default: 2,000)' },
      accounts: { least: 1, most: 5_000, value: 100, help: 'accounts                    (default: 100)' },
      seed: { least: 0, most: 4_294_967_295, value: 1, help: 'what bookings are drawn from (default: 1)' },
    },
    process.argv.slice(2),
  )

await runDemo(command, readOwnFlags, ({ numbers }) => {
  const { bookings = 2_000, accounts = 100, seed = 1 } = numbers
  return runTableFirst({ bookings, accounts, seed })
})
