/** A local run whose source falls silent: the announcer of the run closes its windows and rings its timers. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { startLocalApplication } from '../../../lib/local/run/application.ts'
import { quietApp } from '../fixtures/quiet.ts'

const timeoutMs = 180_000

test(
  'windows of two stages close, and timers ring, after the last record, with a shard that never had one',
  async () => {
    const directory = await mkdtemp(join(tmpdir(), 'millrace-silence-'))
    const received = new Map<string, unknown[]>()
    const of = (output: string) => received.get(output) ?? []
    const app = await startLocalApplication({
      topology: quietApp,
      entry: 'test/local/fixtures/quiet.ts',
      directory: join(directory, 'state'),
      workers: 1,
      shards: 2,
      onOutput: (output, records) => {
        const values = records.map(({ data }) => JSON.parse(Buffer.from(data).toString()) as unknown)
        received.set(output, [...of(output), ...values])
      },
      mapping: { maximumBatchingWindowInSeconds: 0, emulation: { pollIntervalMs: 50 } },
    })
    try {
      await app.run()
      // GIVEN three calls of one window, all in one shard
      const startMs = Math.ceil(systemClock.nowMs() / 1_000) * 1_000
      const lines = ['ann', 'bob', 'ann']
      const Records = lines.map((line, i) => ({
        PartitionKey: 'one',
        Data: Buffer.from(JSON.stringify({ line, at: startMs + i })),
      }))
      await app.client.send(new PutRecordsCommand({ StreamName: app.streamOf('calls').streamName, Records }))
      // WHEN nothing follows
      const endMs = systemClock.nowMs() + timeoutMs / 2
      // Each output is read on its own: that one is there says nothing of another.
      const missing = () => of('per-line').length < 2 || of('totals').length < 1 || of('rings').length < 2
      while (missing()) {
        if (systemClock.nowMs() > endMs) throw new Error(`nothing came but ${JSON.stringify([...received])}`)
        await systemClock.sleep(20)
      }
      // THEN
      const distinct = (output: string) => [...new Set(of(output).map((value) => JSON.stringify(value)))].sort()
      expect(distinct('per-line')).toEqual(
        [
          { line: 'ann', startMs, calls: 2 },
          { line: 'bob', startMs, calls: 1 },
        ].map((value) => JSON.stringify(value)),
      )
      expect(distinct('totals')).toEqual([JSON.stringify({ startMs, lines: 2, calls: 3 })])
      expect(distinct('rings')).toEqual(['"ring ann"', '"ring bob"'])
      expect(of('late')).toEqual([])
    } finally {
      await app.stop()
      await rm(directory, { recursive: true, force: true })
    }
  },
  timeoutMs,
)
