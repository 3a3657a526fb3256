/**
 * A topology of a feeding and a keyed stage behind the real handler, its dead letters in a stream, and the redrive of them. What is
 * broken can be mended, and broken again, while all runs on.
 */
import { join } from 'node:path'
import type { KinesisStreamEvent } from 'aws-lambda'
import { z } from 'zod'
import { streamHandler } from '../../../lib/aws/handler/stream-handler.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { epochMs, milliseconds, TerminalError, Topology, valueState } from '../../../lib/index.ts'
import { DeadLetterLog, type LoggedDeadLetter } from '../../../lib/local/dead-letters/log.ts'
import { redriveEvent } from '../../../lib/local/dead-letters/record.ts'
import { type RedriveOutcome, redrive } from '../../../lib/local/dead-letters/redrive.ts'
import { SettlementFile } from '../../../lib/local/dead-letters/settlement.ts'
import type { DeadLetter } from '../../../lib/runtime/dead-letter.ts'
import { delivered, type Sink } from '../../../lib/runtime/sink.ts'
import { kinesisEvent, lambdaContext } from '../../../lib/testing/events.ts'
import { memoryPorts } from '../../../lib/testing/memory-ports.ts'
import { DeadLetterStream } from './dead-letter-world.ts'

const schema = z.object({ id: z.string(), time: z.number() })
export type Value = z.infer<typeof schema>

/** Where a redrive is killed: at a letter before or after its effect, or when all are to be settled, before or after it is. */
export type Crash = 'before-effect' | 'after-effect' | 'before-settling' | 'after-settling'

/** What is broken: ids of values that a part of the topology refuses. */
export type Part = 'decoding' | 'feeding step' | 'feeding sink' | 'half of the feeding sink' | 'keyed step'

class Killed extends Error {}

const { signal } = new AbortController()

export class RedriveWorld {
  readonly broken: Readonly<Record<Part, Set<string>>> = {
    decoding: new Set(),
    'feeding step': new Set(),
    'feeding sink': new Set(),
    'half of the feeding sink': new Set(),
    'keyed step': new Set(),
  }
  readonly deadLetters = new DeadLetterStream()
  readonly #ports = memoryPorts()
  readonly #handler: ReturnType<typeof streamHandler>
  readonly #seen: ReturnType<Topology['sink']>
  readonly #applied: ReturnType<Topology['sink']>
  readonly #directory: string
  #machines = 0
  #sent = 0

  constructor(directory: string) {
    this.#directory = directory
    const { app, seen, applied } = this.#topology()
    this.#seen = seen
    this.#applied = applied
    const sink: Sink<DeadLetter, DeadLetter> = {
      prepare: ({ value }) => value,
      deliver: async (letters) => {
        for (const letter of letters) this.deadLetters.put(letter)
        return letters.map(() => delivered)
      },
    }
    this.#ports.refuse(seen, (value) => {
      const { id, half } = value as Value & { readonly half: number }
      const isBroken =
        this.broken['feeding sink'].has(id) || (half === 1 && this.broken['half of the feeding sink'].has(id))
      return isBroken ? { status: 'rejected', error: new Error('the sink is broken') } : undefined
    })
    this.#handler = streamHandler(app, { ports: { ...this.#ports, deadLetters: sink as Sink<DeadLetter> } })
  }

  /** Each value goes in two halves to the sink `seen` and, in three copies, to three keys, which count what they get of each id. */
  #topology() {
    const app = new Topology('redrive-app')
    const seen = app.sink<unknown>('seen')
    const applied = app.sink<unknown>('applied')
    const refuses = (part: Part, id: string) => {
      if (this.broken[part].has(id)) throw new TerminalError(`the ${part} is broken`)
    }
    const eventTime = epochMs(({ id, time }: Value) => {
      refuses('decoding', id)
      return time
    })
    const values = app.source('values', schema, { eventTime, outOfOrderness: milliseconds(5) }).map((value) => {
      refuses('feeding step', value.id)
      return value
    })
    values.flatMap((value) => [0, 1].map((half) => ({ ...value, half }))).to(seen)
    values
      .flatMap((value) => [0, 1, 2].map((copy) => ({ ...value, copy })))
      .keyBy('by-copy', ({ copy }) => String(copy), { slots: 4 })
      .process('count', {
        state: { counts: valueState<Record<string, number>>() },
        step: ({ id, copy, time }, { state, record }) => {
          if (copy === 1) refuses('keyed step', id)
          if (record.eventTimeMs !== time) throw new Error('the event time is another')
          const counts = state.counts.get() ?? {}
          state.counts.set({ ...counts, [id]: (counts[id] ?? 0) + 1 })
          return [{ id, copy }]
        },
      })
      .to(applied)
    return { app, seen, applied }
  }

  async send(values: readonly Value[]): Promise<void> {
    const event = kinesisEvent(values, { firstIndex: this.#sent })
    this.#sent += values.length
    await this.#process(event)
  }

  /** Runs what waits for the keyed stage, and every entry so often that it is done. */
  async runKeyed(): Promise<void> {
    for (const event of this.#ports.takeFrames('by-copy')) await this.#process(event)
  }

  async #process(event: KinesisStreamEvent): Promise<void> {
    const { batchItemFailures } = await this.#handler(event, lambdaContext())
    expect(batchItemFailures).toEqual([])
  }

  /** Redrives, on the first machine or on one that does not know what was settled, all that is open there. */
  async redrive(
    options: { readonly elsewhere?: boolean; readonly crash?: Crash | undefined; readonly at?: number } = {},
  ) {
    const { elsewhere = false, crash, at = 0 } = options
    const machine = elsewhere ? ++this.#machines : 0
    const log = new DeadLetterLog(this.deadLetters)
    await log.refresh()
    const settlements = await SettlementFile.open(join(this.#directory, `redriven-${machine}.ndjson`))
    const outcomes = new Map<string, RedriveOutcome>()
    const dead = Promise.withResolvers<never>()
    let letter = 0
    const killedAt = async <T>(effect: () => Promise<T>): Promise<T> => {
      const dies = letter++ === at
      if (dies && crash === 'before-effect') throw new Killed()
      const answer = await effect()
      if (dies && crash === 'after-effect') throw new Killed()
      return answer
    }
    const work = redrive({
      ...{ topology: 'redrive-app', sources: ['values'], generations: new Map(), clock: systemClock, signal, log },
      letters: log.letters.filter((one) => !settlements.isSettled(one)),
      settlements: this.#dying(settlements, crash),
      function: { refusal: () => undefined, invoke: (record) => killedAt(() => this.#invoke(record)) },
      streams: {
        slotsOf: (stage) => (stage === 'by-copy' ? 4 : { reason: 'there is no such stage' }),
        // Death is no refusal of the stream: the process ends.
        publish: (stage, frame) =>
          killedAt(async () => this.#ports.frames?.(stage)?.publish([frame], signal)).catch((error) => {
            if (error instanceof Killed) dead.reject(error)
            return new Promise(() => undefined)
          }),
      },
      readSource: async () => undefined,
      readObject: async () => Promise.reject(new Error('there is none')),
      onOutcome: ({ entry }: LoggedDeadLetter, outcome) => void outcomes.set(entry.id, outcome),
    })
    await Promise.race([work, dead.promise]).catch((error) => {
      if (!(error instanceof Killed)) throw error
    })
    return outcomes
  }

  async #invoke(record: Parameters<typeof redriveEvent>[0]) {
    const streamArn = 'arn:aws:kinesis:us-east-1:000000000000:stream/values'
    const event = JSON.parse(JSON.stringify(redriveEvent(record, { name: 'values', kind: 'kinesis', streamArn })))
    return { kind: 'answered' as const, payload: await this.#handler(event, lambdaContext()) }
  }

  #dying(settlements: SettlementFile, crash: Crash | undefined): SettlementFile {
    const settle: SettlementFile['settle'] = async (letters, atMs) => {
      if (crash === 'before-settling') throw new Killed()
      await settlements.settle(letters, atMs)
      if (crash === 'after-settling') throw new Killed()
    }
    return { settle } as SettlementFile
  }

  /** The letters that the first machine has not settled. */
  async open(): Promise<readonly DeadLetter[]> {
    const log = new DeadLetterLog(this.deadLetters)
    await log.refresh()
    const settlements = await SettlementFile.open(join(this.#directory, 'redriven-0.ndjson'))
    return log.letters.filter((one) => !settlements.isSettled(one)).map(({ entry }) => entry)
  }

  mendAll(): void {
    for (const ids of Object.values(this.broken)) ids.clear()
  }

  /** How often each id is in the state of each key, then how often in each sink. */
  async effects(): Promise<Readonly<Record<string, readonly number[]>>> {
    const keys = ['0', '1', '2']
    const items = await this.#ports.state('by-copy')?.readKeys(keys, signal)
    const counts = keys.map((key) => (items?.get(key)?.states['count.counts'] ?? {}) as Record<string, number>)
    const seen = this.#ports.received(this.#seen) as readonly Value[]
    const applied = this.#ports.received(this.#applied) as readonly { id: string; copy: number }[]
    const ids = Array.from({ length: this.#sent }, (_, i) => String(i))
    const timesIn = (values: readonly { readonly id: string }[], id: string) =>
      values.filter((value) => value.id === id).length
    return Object.fromEntries(
      ids.map((id) => [id, [...counts.map((of) => of[id] ?? 0), timesIn(seen, id), timesIn(applied, id)]]),
    )
  }

  get sent(): number {
    return this.#sent
  }
}
