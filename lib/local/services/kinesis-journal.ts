/** How the streams and records of the embedded Kinesis are kept in a file between runs: bytes are base64. */
import type { KinesisEffect } from '../../emulator/kinesis/index.ts'
import { type EffectJournal, type JournalFormat, openEffectJournal, type WriteAt } from './effect-journal.ts'

export type KinesisJournal = EffectJournal<KinesisEffect>
export type { WriteAt }

const format: JournalFormat<KinesisEffect> = {
  service: 'Kinesis',
  contents: 'streams',
  header: { format: 'millrace-kinesis-journal', version: 1 },
  toJson,
  fromJson,
}

/**
 * Opens a journal, or makes one in a directory that exists, and hands every effect in it to `restore`.
 *
 * @throws ConfigurationError naming the file and the line, when the file is damaged or was written by a newer release.
 */
export function openKinesisJournal(
  path: string,
  restore: (effect: KinesisEffect) => void,
  writeAt?: WriteAt,
): Promise<KinesisJournal> {
  return openEffectJournal(format, path, restore, writeAt)
}

function toJson(effect: KinesisEffect): unknown {
  if (effect.type !== 'records-put') return effect
  const records = effect.records.map(({ shard, partitionKey, data }) => [
    shard,
    partitionKey,
    Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'),
  ])
  return { ...effect, records }
}

function fromJson(json: unknown): KinesisEffect {
  const effect = json as KinesisEffect
  if (effect.type !== 'records-put') return effect
  const rows = effect.records as unknown as readonly [number, string, string][]
  return {
    ...effect,
    records: rows.map(([shard, partitionKey, data]) => ({ shard, partitionKey, data: Buffer.from(data, 'base64') })),
  }
}
