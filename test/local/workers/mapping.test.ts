import { join } from 'node:path'
import { EventSourceMapping, kinesisFormat } from '../../../lib/emulator/event-source-mapping/index.ts'
import { startWorkerPool } from '../../../lib/local/workers/index.ts'
import { streamArn } from '../../emulator/event-source-mapping/mapping-world.ts'
import { MemoryCheckpoints, MemoryDestination, MemoryStream } from '../../emulator/event-source-mapping/memory-ports.ts'
import { VirtualClock } from '../../emulator/event-source-mapping/virtual-clock.ts'

const clock = {
  nowMs: () => Date.now(),
  sleep: (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      signal?.addEventListener('abort', () => {
        clearTimeout(timer)
        resolve()
      })
    }),
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** Two shards of 30 records each, read by a mapping whose invoker is a pool of two workers. */
async function startRun(handlerName: string, timeoutMs: number, maximumRetryAttempts: number) {
  const stream = new MemoryStream(new VirtualClock(Date.now()))
  for (const shardId of ['s0', 's1']) {
    stream.addShard(shardId)
    for (let sequence = 1; sequence <= 30; sequence += 1) stream.put(shardId, sequence)
  }
  const lines: string[] = []
  const pool = await startWorkerPool({
    size: 2,
    handlerFile: join(__dirname, '../fixtures/handlers.mjs'),
    handlerName,
    environment: {},
    memoryLimitMb: 64,
    timeoutMs,
    // Of processes that are started again and again on a busy machine.
    initTimeoutMs: 60_000,
    affinity: 'shards',
    onLine: (_worker, _stream, line) => lines.push(line),
  })
  const checkpoints = new MemoryCheckpoints()
  const onFailure = new MemoryDestination()
  const mapping = new EventSourceMapping({
    settings: {
      uuid: 'u',
      functionArn: 'arn:aws:lambda:us-east-1:000000000000:function:f',
      startingPosition: 'TRIM_HORIZON',
      batchSize: 10,
      maximumRetryAttempts,
      emulation: { backoff: { initialMs: 20, factor: 2, maxMs: 200 } },
    },
    format: kinesisFormat({ streamArn }),
    reader: stream,
    invoker: pool,
    checkpoints,
    clock,
    onFailure,
  })
  await mapping.start()
  const isDone = () => ['s0', 's1'].every((shardId) => checkpoints.at(shardId) === '30')
  const stop = () => mapping.stop().then(() => pool.stop())
  return { pool, mapping, lines, onFailure, isDone, stop }
}

test('a worker that is killed in the middle of a batch loses nothing: its shard goes on elsewhere, in order', async () => {
  const { pool, lines, onFailure, isDone, stop } = await startRun('delivers', 60_000, -1)
  await until(() => lines.length >= 3)
  await pool.kill(pool.workers()[0]?.id ?? '')
  await until(isDone)
  await stop()
  expect(onFailure.messages).toEqual([])
  for (const shardId of ['s0', 's1']) {
    const delivered = lines.filter((line) => line.startsWith(shardId)).map((line) => line.split(' ')[1])
    // The killed batch may come twice; each other one comes once, and never before its turn.
    const once = delivered.filter((batch, index) => batch !== delivered[index - 1])
    expect(once).toEqual(['1', '11', '21'])
  }
}, 120_000)

test('a handler that never answers is timed out, retried and reported, and the shards move on', async () => {
  const { onFailure, isDone, stop } = await startRun('neverAnswers', 50, 1)
  await until(isDone)
  await stop()
  expect(onFailure.envelopes).toHaveLength(6)
  expect(onFailure.envelopes[0]).toMatchObject({
    requestContext: { condition: 'RetryAttemptsExhausted', approximateInvokeCount: 2 },
    responseContext: { functionError: 'Unhandled' },
  })
}, 120_000)
