import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KinesisClient, PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { type ReplayOptions, type ReplayProgress, readProgress, replay } from '../../../bin/flights/replay.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import type { Clock } from '../../../lib/core/clock.ts'
import { ProgressFile } from '../../../lib/local/files/progress-file.ts'
import { replaceFile } from '../../../lib/local/files/replace-file.ts'

let directory: string
let progressFile: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-replay-'))
  progressFile = join(directory, 'replay.json')
})
afterEach(() => rm(directory, { recursive: true }))

/** A stream that takes what `takes` lets through, and remembers it. */
function stream(takes: (payload: string, attempt: number) => boolean = () => true) {
  const taken: string[] = []
  const requests: number[] = []
  const client = {
    async send({ input }: PutRecordsCommand) {
      const records = input.Records ?? []
      requests.push(records.length)
      return {
        Records: records.map(({ Data }) => {
          const payload = Buffer.from(Data ?? []).toString()
          if (!takes(payload, requests.length)) return { ErrorCode: 'Throttled', ErrorMessage: 'too fast' }
          taken.push(payload)
          return { SequenceNumber: '1' }
        }),
      }
    },
  }
  return { taken, requests, client: client as unknown as KinesisClient }
}

/** A clock on which sleeping takes no time but moves it. */
function sleeplessClock(): Clock & { sleptMs: number } {
  const clock = {
    sleptMs: 0,
    nowMs: () => clock.sleptMs,
    sleep: async (ms: number) => {
      clock.sleptMs += ms
    },
  }
  return clock
}

const input = (count: number, everyMs = 0) =>
  Array.from({ length: count }, (_, index) => ({
    partitionKey: 'LAS',
    data: Buffer.from(String(index)),
    knownMs: index * everyMs,
  }))

const settings = { limit: 10, corrupt: 0, shards: 1 }

function run(client: KinesisClient, options: Partial<ReplayOptions>): Promise<number> {
  return replay({
    client,
    streamName: 'flights',
    input: [],
    settings,
    progress: new ProgressFile<ReplayProgress>(progressFile, sleeplessClock()),
    from: 0,
    speed: 'max',
    clock: sleeplessClock(),
    signal: new AbortController().signal,
    onSent: () => undefined,
    onBlocked: () => undefined,
    ...options,
  })
}

test('sends everything in order, at most 500 records per request, and notes how far it is', async () => {
  const { client, taken, requests } = stream()
  expect(await run(client, { input: input(1_200) })).toBe(1_200)
  expect(requests).toEqual([500, 500, 200])
  expect(taken).toEqual(input(1_200).map(({ data }) => data.toString()))
  expect(await readProgress(progressFile)).toEqual({ settings, sent: 1_200, finished: false })
})

test('goes on where it was, and ends after the request in flight', async () => {
  const { client, taken } = stream()
  const controller = new AbortController()
  const onSent = () => controller.abort()
  expect(await run(client, { input: input(1_500), from: 300, signal: controller.signal, onSent })).toBe(800)
  expect(taken[0]).toBe('300')
  expect((await readProgress(progressFile))?.sent).toBe(800)
})

test('refused records are sent again before anything behind them', async () => {
  const { client, taken, requests } = stream((payload, attempt) => payload !== '7' || attempt > 2)
  await run(client, { input: input(600) })
  expect(requests).toEqual([500, 1, 1, 100])
  expect(taken.indexOf('7')).toBe(499)
  expect(new Set(taken).size).toBe(600)
})

test('a stream that refuses for ever ends the run with one line, and the progress stays behind', async () => {
  const { client } = stream((payload) => payload !== '507')
  await expect(run(client, { input: input(600) })).rejects.toThrow(
    'The stream flights refused 1 records 50 times: too fast. Run again to go on.',
  )
  expect((await readProgress(progressFile))?.sent).toBe(500)
})

const noSpace = () => Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })

test('a full disk holds the replay up and says why, and it goes on without a loss', async () => {
  const { client, taken } = stream()
  const shown: (string | undefined)[] = []
  let writes = 0
  const progress = new ProgressFile<ReplayProgress>(progressFile, sleeplessClock(), async (path, text) => {
    writes += 1
    // The second note is refused often; nothing more is sent until it is there.
    if (writes > 1 && writes < 100) {
      expect(taken).toHaveLength(1_000)
      throw noSpace()
    }
    await replaceFile(path, text)
  })
  const onBlocked = (problem: string | undefined) => void (shown.at(-1) !== problem && shown.push(problem))
  expect(await run(client, { input: input(1_200), progress, onBlocked })).toBe(1_200)
  expect(taken).toEqual(input(1_200).map(({ data }) => data.toString()))
  const problem = `${progressFile} cannot be written: the disk is full; free some space and the run goes on`
  expect(shown).toEqual([problem, undefined])
  expect((await readProgress(progressFile))?.sent).toBe(1_200)
})

/** A stream whose service cannot save until so many requests have failed. */
function unsavedStream(failures: number) {
  const { client, taken } = stream()
  let left = failures
  const send = async (command: PutRecordsCommand) => {
    left -= 1
    if (left < 0) return client.send(command)
    const message = 'The embedded Kinesis failed: ENOSPC: no space left on device, write'
    throw Object.assign(new Error(message), { name: 'InternalFailure' })
  }
  return { taken, client: { send } as unknown as KinesisClient }
}

test('a service that cannot save is asked again for as long as it takes', async () => {
  const { client, taken } = unsavedStream(200)
  const shown: (string | undefined)[] = []
  const onBlocked = (problem: string | undefined) => void (shown.at(-1) !== problem && shown.push(problem))
  expect(await run(client, { input: input(600), onBlocked })).toBe(600)
  expect(taken).toEqual(input(600).map(({ data }) => data.toString()))
  const problem = 'The stream flights cannot be written: the disk is full; free some space and the run goes on'
  expect(shown).toEqual([problem, undefined])
})

test('the signal ends a replay that waits for space', async () => {
  const { client, taken } = unsavedStream(Number.POSITIVE_INFINITY)
  const controller = new AbortController()
  const onBlocked = () => controller.abort()
  expect(await run(client, { input: input(600), signal: controller.signal, onBlocked })).toBe(0)
  expect(taken).toEqual([])
})

test('with a speed, reports are sent when they become known', async () => {
  const { client } = stream()
  const clock = sleeplessClock()
  const seen: { sent: number; atMs: number }[] = []
  const onSent = (sent: number) => seen.push({ sent, atMs: clock.nowMs() })
  // One report a minute at 60 seconds a second: one each second.
  await run(client, { input: input(4, 60_000), speed: 60, clock, onSent })
  expect(seen).toEqual([
    { sent: 1, atMs: 0 },
    { sent: 2, atMs: 1_000 },
    { sent: 3, atMs: 2_000 },
    { sent: 4, atMs: 3_000 },
  ])
})

test('the note of the progress is whole at any time, and a damaged one is refused', async () => {
  const { client } = stream()
  await run(client, { input: input(10), clock: systemClock })
  expect(JSON.parse(await readFile(progressFile, 'utf8')).sent).toBe(10)
  await writeFile(progressFile, '{"sent": "many"}')
  await expect(readProgress(progressFile)).rejects.toThrow(/replay\.json is damaged: start over with --fresh\.$/)
  expect(await readProgress(join(directory, 'none.json'))).toBeUndefined()
})
