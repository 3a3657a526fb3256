/**
 * What a partition remembers of its idempotent producers.
 *
 * 1. A batch that goes on from the producer's last sequence number is new; one of its last five batches is a duplicate, and is
 *    answered with the offset that it got. Anything else is refused.
 * 2. An older epoch is refused. A newer one begins at sequence number 0.
 * 3. A producer that the partition does not know may begin anywhere, as one whose state has expired does.
 *
 * @see https://kafka.apache.org/documentation/#producerconfigs_enable.idempotence
 */
import { KafkaError } from './errors.ts'
import type { BatchProducer } from './shapes.ts'

/** Sequence numbers begin anew at 0 behind this one. */
const lastSequence = 2 ** 31 - 1
/** How many requests an idempotent producer may have in flight, and so how many batches may come again. */
const rememberedBatches = 5

interface KnownBatch {
  readonly first: number
  readonly last: number
  readonly offset: number
}

interface KnownProducer {
  readonly epoch: number
  readonly batches: readonly KnownBatch[]
}

const after = (sequence: number, count: number): number => (sequence + count) % (lastSequence + 1)

export class ProducerStates {
  readonly #known = new Map<number, KnownProducer>()

  /** The offset that a batch has already; undefined where it is new. Throws a {@link KafkaError} where it is neither. */
  offsetOf({ producerId, epoch, sequence }: BatchProducer, records: number): number | undefined {
    const known = this.#known.get(producerId)
    if (known === undefined) return undefined
    if (epoch < known.epoch) {
      throw new KafkaError(
        'INVALID_PRODUCER_EPOCH',
        `Producer ${producerId} has the epoch ${known.epoch} by now: what has epoch ${epoch} is fenced.`,
      )
    }
    const lastOf = epoch > known.epoch ? undefined : known.batches.at(-1)
    const expected = lastOf === undefined ? 0 : after(lastOf.last, 1)
    if (sequence === expected) return undefined
    const last = after(sequence, records - 1)
    const same = lastOf && known.batches.find((batch) => batch.first === sequence && batch.last === last)
    if (same) return same.offset
    const isOld = lastOf !== undefined && sequence <= lastOf.last
    throw new KafkaError(
      isOld ? 'DUPLICATE_SEQUENCE_NUMBER' : 'OUT_OF_ORDER_SEQUENCE_NUMBER',
      `Producer ${producerId} sent the sequence number ${sequence}, and ${expected} comes next.`,
    )
  }

  appended({ producerId, epoch, sequence }: BatchProducer, records: number, offset: number): void {
    const known = this.#known.get(producerId)
    const before = known?.epoch === epoch ? known.batches : []
    const batch = { first: sequence, last: after(sequence, records - 1), offset }
    this.#known.set(producerId, { epoch, batches: [...before, batch].slice(-rememberedBatches) })
  }
}
