/** Throughput of the contenders, side by side: every round runs each of them, so that a slow moment hits all alike. */
import { type Figure, median, table } from '../figures.ts'
import { type Contender, contenders, eventOf } from './contenders.ts'

const rounds = 41
const roundMs = 40

async function recordsPerMs(contender: Contender, event: ReturnType<typeof eventOf>): Promise<number> {
  const startMs = performance.now()
  let batches = 0
  while (performance.now() - startMs < roundMs) {
    await contender(event)
    batches++
  }
  return (batches * event.Records.length) / (performance.now() - startMs)
}

/** Medians over the rounds, and the median of each round's ratio to the hand-written loop. */
async function race(count: number, bytes: number) {
  const event = eventOf(count, bytes)
  const names = Object.keys(contenders) as (keyof typeof contenders)[]
  const speeds = new Map(names.map((name) => [name, [] as number[]]))
  for (let round = -5; round < rounds; round++) {
    // The order turns with the rounds, so that none always follows the same other.
    for (const name of [...names.slice(round % 4), ...names.slice(0, round % 4)]) {
      const speed = await recordsPerMs(contenders[name], event)
      if (round >= 0) speeds.get(name)?.push(speed)
    }
  }
  const byHand = speeds.get('hand-written') as number[]
  return names.map((name) => {
    const own = speeds.get(name) as number[]
    return { name, perSecond: median(own) * 1_000, ratio: median(own.map((speed, i) => speed / (byHand[i] as number))) }
  })
}

/** Ratio to the hand-written loop that must be reached at batches of 100 and 1,000. */
const goal = 0.95

export async function throughput(): Promise<Figure[]> {
  const figures: Figure[] = []
  const rows = [['batch x bytes', ...Object.keys(contenders).flatMap((name) => [name, 'ratio'])]]
  for (const bytes of [200, 2_000]) {
    for (const count of [10, 100, 1_000]) {
      const results = await race(count, bytes)
      rows.push([
        `${count.toLocaleString('en')} x ${bytes.toLocaleString('en')} B`,
        ...results.flatMap(({ perSecond, ratio }) => [Math.round(perSecond).toLocaleString('en'), ratio.toFixed(2)]),
      ])
      for (const { name, perSecond, ratio } of results) {
        figures.push({ name: `${name}, ${count} x ${bytes} B`, value: Math.round(perSecond), unit: 'records/s' })
        const judged = name === 'millrace' && count >= 100
        figures.push({
          name: `${name} / hand-written, ${count} x ${bytes} B`,
          value: Math.round(ratio * 1000) / 1000,
          unit: 'ratio',
          ...(judged ? { goal } : {}),
        })
      }
    }
  }
  console.log(`Records a second (medians of ${rounds} rounds), and the ratio to the hand-written loop\n`)
  console.log(table(rows))
  return figures
}
