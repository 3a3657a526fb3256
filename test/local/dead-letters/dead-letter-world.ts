import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DeadLetterEntry } from '../../../lib/aws/dead-letters/entry.ts'
import type { ShardReader, SourceRecord } from '../../../lib/emulator/event-source-mapping/index.ts'

export const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** A dead letter of source `orders`, by its position. */
export function entryAt(position: string, changes: Partial<DeadLetterEntry> = {}): DeadLetterEntry {
  const where = { source: 'orders', partition: 'shardId-000000000000', subPosition: 0, ...changes }
  return {
    formatVersion: 1,
    topology: 'orders-app',
    stage: 'orders',
    id: `${where.source}/${where.partition}/${position}/${where.subPosition}`,
    position,
    arrivalTimeMs: 1_000,
    failedAtMs: 2_000,
    reason: { code: 'not-json', phase: 'decode', attempts: 1, name: 'TerminalError', message: 'it is cut' },
    key: base64(`key-${position}`),
    payload: base64(`payload-${position}`),
    headers: [],
    ...where,
  }
}

/** A dead-letter stream of one shard in memory. */
export class DeadLetterStream implements ShardReader {
  readonly #records: SourceRecord[] = []
  /** Reads, to see that nothing is read twice. */
  recordsRead = 0

  put(value: DeadLetterEntry | string): void {
    const data = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
    this.#records.push({ sequenceNumber: String(this.#records.length + 1), partitionKey: 'k', data, arrivalMs: 0 })
  }

  async listShards() {
    return [{ shardId: 'shard', parentIds: [] }]
  }

  async open(_shardId: string, position: { at: string; sequenceNumber?: string }) {
    return position.sequenceNumber ?? '0'
  }

  /** Two at a time, with an empty answer before the end, as Kinesis may give. */
  async read(iterator: string) {
    const from = Math.floor(Number(iterator))
    const isPause = iterator.endsWith('.5')
    const records = isPause ? [] : this.#records.slice(from, from + 2)
    this.recordsRead += records.length
    const at = from + records.length
    return {
      records,
      nextIterator: isPause ? `${at}` : `${at}.5`,
      millisBehindLatest: at < this.#records.length ? 1 : 0,
    }
  }
}

export async function scratchDirectory(): Promise<{ path: string; remove: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'millrace-dead-letters-'))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}
