/** Canaries of what a handler answers on Kafka: each is looked for in runs on Kafka's log. */
import type { Canary } from './canary.ts'

const answeredInVain: Canary = {
  breaks: 'without provisioned pollers what is not done is answered, and nobody reads that',
  caughtBy: 'nothing-lost',
  faults: { any: true, crash: 0.005, refusedItem: 0.2 },
  kafka: { mode: 'on-demand', answers: 'provisioned' },
}

const firstOffsetAlone: Canary = {
  breaks: 'of a partition the first offset that is not done is reported, and none behind it',
  caughtBy: 'nothing-lost',
  faults: { any: true, crash: 0.005, refusedItem: 0.2 },
  kafka: { mode: 'provisioned', answers: 'first-offset-alone' },
}

export const kafkaCanaries = {
  'answered-in-vain': answeredInVain,
  'first-offset-alone': firstOffsetAlone,
} as const satisfies { readonly [name: string]: Canary }
