/** `npm run demo:bookings`: windows close, late bookings correct them, and whoever keeps the last result of each window is right. */
import { runBookings } from './bookings/run.ts'
import { runDemo } from './demo.ts'
import { readFlags } from './flags.ts'

const command = 'npm run demo:bookings'
const about =
  'Counts bookings per hotel and five minutes, with late ones among them, and checks the results of a blind consumer.'

const readOwnFlags = () =>
  readFlags(
    command,
    about,
    {
      bookings: {
        least: 100,
        most: 200_000,
        value: 6_000,
        help: 'bookings that come in time           (default: 6,000)',
      },
      hotels: { least: 2, most: 1_000, value: 20, help: 'hotels                               (default: 20)' },
      rounds: { least: 1, most: 20, value: 3, help: 'half hours of bookings               (default: 3)' },
      late: { least: 1, most: 500, value: 8, help: 'late bookings of each kind and round (default: 8)' },
      shards: { least: 1, most: 8, value: 2, help: 'shards of each stream                (default: 2)' },
      seed: { least: 0, most: 4_294_967_295, value: 1, help: 'what the bookings are drawn from     (default: 1)' },
    },
    process.argv.slice(2),
  )

await runDemo(command, readOwnFlags, ({ numbers, stop }) => {
  const { bookings = 6_000, hotels = 20, rounds = 3, late = 8, shards = 2, seed = 1 } = numbers
  return runBookings({ bookings, hotels, rounds, late, shards, seed }, stop.signal)
})
