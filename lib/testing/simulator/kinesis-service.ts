/** Kinesis as the service of a run. */
import { firstHashOf } from '../../core/slot.ts'
import type { ReadPosition, ShardRead } from '../../emulator/event-source-mapping/index.ts'
import { createKinesisModel, type KinesisModel } from '../../emulator/kinesis/index.ts'
import type { Random } from './random.ts'
import type { Change, ListedShard, NewEntry, StreamService } from './stream-service.ts'

type OpenShard = ListedShard & { readonly place: { readonly startHash: string; readonly endHash: string } }

export class KinesisService implements StreamService {
  readonly #model: KinesisModel

  constructor(clock: { nowMs(): number }) {
    this.#model = createKinesisModel({ clock })
  }

  create(name: string, partitions: number): void {
    this.#model.call('CreateStream', { StreamName: name, ShardCount: partitions })
    this.#model.call('IncreaseStreamRetentionPeriod', { StreamName: name, RetentionPeriodHours: 168 })
  }

  list(name: string): readonly OpenShard[] {
    return this.#model.call('ListShards', { StreamName: name }).Shards.map((shard) => ({
      id: shard.ShardId,
      parents: [shard.ParentShardId, shard.AdjacentParentShardId].filter((parent) => parent !== undefined),
      place: { startHash: shard.HashKeyRange.StartingHashKey, endHash: shard.HashKeyRange.EndingHashKey },
      isClosed: shard.SequenceNumberRange.EndingSequenceNumber !== undefined,
    }))
  }

  put(
    name: string,
    { partitionKey, data, slot }: NewEntry,
  ): { readonly shard: string; readonly sequenceNumber: string } {
    const { ShardId, SequenceNumber } = this.#model.call('PutRecord', {
      StreamName: name,
      PartitionKey: partitionKey,
      Data: data,
      ...(slot === undefined ? {} : { ExplicitHashKey: firstHashOf(slot.slot, slot.of) }),
    })
    return { shard: ShardId, sequenceNumber: SequenceNumber }
  }

  open(name: string, shard: string, position: ReadPosition): string {
    const of = { StreamName: name, ShardId: shard }
    const start =
      position.at === 'after'
        ? { ShardIteratorType: 'AFTER_SEQUENCE_NUMBER' as const, StartingSequenceNumber: position.sequenceNumber }
        : { ShardIteratorType: 'TRIM_HORIZON' as const }
    return this.#model.call('GetShardIterator', { ...of, ...start }).ShardIterator
  }

  read(iterator: string, limit: number): ShardRead {
    const answer = this.#model.call('GetRecords', { ShardIterator: iterator, Limit: limit })
    const records = answer.Records.map((record) => ({
      sequenceNumber: record.SequenceNumber,
      partitionKey: record.PartitionKey,
      data: record.Data,
      arrivalMs: record.ApproximateArrivalTimestamp.getTime(),
    }))
    return { records, nextIterator: answer.NextShardIterator ?? null, millisBehindLatest: answer.MillisBehindLatest }
  }

  /** Splits an open shard, or merges two neighbours. */
  change(name: string, isSource: boolean, random: Random): Change {
    const of = isSource ? 'the source' : 'an internal stream'
    const open = this.list(name).filter((shard) => !shard.isClosed)
    open.sort((a, b) => (BigInt(a.place.startHash) < BigInt(b.place.startHash) ? -1 : 1))
    if (open.length > 1 && (open.length > 3 || random.chance(0.5))) {
      const at = random.integer(0, open.length - 2)
      const [left, right] = [open[at] as OpenShard, open[at + 1] as OpenShard]
      const merged = { ShardToMerge: left.id, AdjacentShardToMerge: right.id }
      this.#model.call('MergeShards', { StreamName: name, ...merged })
      return { what: `merge ${left.id} and ${right.id} of ${name}`, kind: `merge of ${of}` }
    }
    const { id, place } = random.pick(open)
    const [start, end] = [BigInt(place.startHash), BigInt(place.endHash)]
    // Now and then the border falls inside a slot.
    const share = BigInt(random.chance(0.7) ? 512 : random.integer(1, 1_023))
    const NewStartingHashKey = String(start + ((end - start + 1n) * share) / 1_024n)
    this.#model.call('SplitShard', { StreamName: name, ShardToSplit: id, NewStartingHashKey })
    return { what: `split ${id} of ${name}`, kind: `split of ${of}` }
  }
}
