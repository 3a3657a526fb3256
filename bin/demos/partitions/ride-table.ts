/**
 * The table behind the shared output: an idempotent sink of measured rides.
 *
 * 1. A row is stored by its identity, which follows from the input record alone, so a repeated output changes nothing and is counted.
 * 2. A repeated output with other content would be a mistake of the topology; it is counted apart.
 */
import type { MeasuredRide } from '../../../functions/partitions/topology.ts'

export interface RideRow {
  readonly text: string
  /** When the first output of this identity reached the stream, ms since 1970. */
  readonly arrivalMs: number
}

export class RideTable {
  readonly rows = new Map<string, RideRow>()
  /** Outputs as they came, by shard of their input: when each reached the output stream, repeated ones included. */
  readonly arrivalsMs = new Map<string, number[]>()
  outputs = 0
  duplicates = 0
  contradictions = 0

  take(records: readonly { readonly data: Uint8Array; readonly arrivalMs: number }[]): void {
    for (const { data, arrivalMs } of records) {
      const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString()
      const { identity, shard } = JSON.parse(text) as MeasuredRide
      this.outputs += 1
      const arrivals = this.arrivalsMs.get(shard)
      if (arrivals) arrivals.push(arrivalMs)
      else this.arrivalsMs.set(shard, [arrivalMs])
      const known = this.rows.get(identity)
      if (known === undefined) this.rows.set(identity, { text, arrivalMs })
      else {
        this.duplicates += 1
        if (known.text !== text) this.contradictions += 1
      }
    }
  }
}
