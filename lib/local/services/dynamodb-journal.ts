/** How the tables, items and streams of the embedded DynamoDB are kept in a file between runs: bytes are base64. */
import type { DynamoEffect, Item, ItemWrite } from '../../emulator/dynamodb/index.ts'
import { toWire } from './aws-json.ts'
import { decodeItem } from './dynamodb-wire.ts'
import { type EffectJournal, type JournalFormat, openEffectJournal, type WriteAt } from './effect-journal.ts'

export type DynamoJournal = EffectJournal<DynamoEffect>

const format: JournalFormat<DynamoEffect> = {
  service: 'DynamoDB',
  contents: 'tables',
  header: { format: 'millrace-dynamodb-journal', version: 1 },
  toJson: toWire,
  fromJson,
}

/**
 * Opens a journal, or makes one in a directory that exists, and hands every effect in it to `restore`.
 *
 * @throws ConfigurationError naming the file and the line, when the file is damaged or was written by a newer release.
 */
export function openDynamoJournal(
  path: string,
  restore: (effect: DynamoEffect) => void,
  writeAt?: WriteAt,
): Promise<DynamoJournal> {
  return openEffectJournal(format, path, restore, writeAt)
}

function fromJson(json: unknown): DynamoEffect {
  const effect = json as DynamoEffect
  if (effect.type !== 'items-written') return effect
  return { ...effect, writes: effect.writes.map(fromJsonWrite) }
}

function fromJsonWrite(write: ItemWrite): ItemWrite {
  if ('item' in write) return { table: write.table, item: decodeItem(write.item) as Item }
  return { table: write.table, deleted: decodeItem(write.deleted) as Item }
}
