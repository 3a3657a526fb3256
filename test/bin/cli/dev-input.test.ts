import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KinesisClient, PutRecordsCommand } from '@aws-sdk/client-kinesis'
import { devInputs, InputProgress, sendInput } from '../../../bin/cli/dev-input.ts'
import type { Clock } from '../../../lib/core/clock.ts'
import { replaceFile } from '../../../lib/local/files/replace-file.ts'

let directory: string
let file: string
let sent: string[]
let said: string[]
let stop: AbortController
/** What kept the input from being sent, each change once. */
let shown: (string | undefined)[]

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-input-'))
  file = join(directory, 'events.ndjson')
  sent = []
  said = []
  shown = []
  stop = new AbortController()
})
afterEach(() => rm(directory, { recursive: true }))

const sleepless: Clock = { nowMs: () => 0, sleep: async () => undefined }

/** A disk that is full for so many writes. */
function fullFor(writes: number): typeof replaceFile {
  let left = writes
  return async (path, text) => {
    left -= 1
    if (left >= 0) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
    await replaceFile(path, text)
  }
}

/** A stream that takes everything; `onPut` runs before it answers. */
function stream(onPut: () => void = () => undefined): KinesisClient {
  const send = async ({ input }: PutRecordsCommand) => {
    onPut()
    sent.push(...(input.Records ?? []).map(({ Data }) => Buffer.from(Data ?? []).toString('latin1')))
    return { Records: input.Records?.map(() => ({ SequenceNumber: '1' })) }
  }
  return { send } as unknown as KinesisClient
}

/** One run of the command, as far as its input goes. */
async function run(client = stream(), replace = replaceFile): Promise<void> {
  const progress = await InputProgress.open(join(directory, 'input.json'), sleepless, replace)
  const input = { source: 'orders', file }
  await sendInput({
    ...{ input, client, progress, signal: stop.signal },
    streamName: 'orders',
    say: (line) => void said.push(line),
    onSent: () => undefined,
    onBlocked: (problem) => void (shown.at(-1) !== problem && shown.push(problem)),
  })
}

test('lines are sent as the bytes that they are, in order, whatever ends them', async () => {
  await writeFile(file, Buffer.from('{"a":1}\r\n\n\xff\xfe\n{"cut', 'latin1'))
  await run()
  expect(sent).toEqual(['{"a":1}', '\xff\xfe', '{"cut'])
})

test('a line that was cut off by the end of the file and is whole now is a change', async () => {
  await writeFile(file, 'one\ntw')
  await run()
  await appendFile(file, 'o\nthree\n')
  await run()
  expect(sent).toEqual(['one', 'tw', 'one', 'two', 'three'])
  expect(said).toEqual([`${file} has changed since it was sent, so all of it is sent.`])
})

test('a run that is stopped while a request is under way does not send its lines again', async () => {
  const lines = Array.from({ length: 1_200 }, (_, index) => `line ${index}`)
  await writeFile(file, `${lines.join('\n')}\n`)
  await run(stream(() => stop.abort()))
  expect(sent).toHaveLength(500)
  stop = new AbortController()
  await run()
  expect(sent).toEqual(lines)
})

test('while the disk is full the input waits and says why, and then all of it is sent once', async () => {
  const lines = Array.from({ length: 1_200 }, (_, index) => `line ${index}`)
  await writeFile(file, `${lines.join('\n')}\n`)
  await run(stream(), fullFor(3))
  expect(sent).toEqual(lines)
  const path = join(directory, 'input.json')
  expect(shown).toEqual([`${path} cannot be written: the disk is full; free some space and the run goes on`, undefined])
  await run()
  expect(sent).toEqual(lines)
})

test('a stream that cannot save for want of space gets the lines again until it can', async () => {
  await writeFile(file, 'one\ntwo\n')
  let failures = 2
  const full = stream(() => {
    failures -= 1
    const message = 'The embedded Kinesis failed: ENOSPC: no space left on device, write'
    if (failures >= 0) throw Object.assign(new Error(message), { name: 'InternalFailure' })
  })
  await run(full)
  expect(sent).toEqual(['one', 'two'])
  const problem = 'The stream orders cannot be written: the disk is full; free some space and the run goes on'
  expect(shown).toEqual([problem, undefined])
})

test('a run that is stopped while the disk is full ends', async () => {
  await writeFile(file, 'one\n')
  const isFull = fullFor(Number.POSITIVE_INFINITY)
  await run(stream(), (path, text) => {
    stop.abort()
    return isFull(path, text)
  })
  stop = new AbortController()
  await run()
  expect(sent).toEqual(['one', 'one'])
})

test('a line that no record can hold is named and left out', async () => {
  await writeFile(file, `one\n${'x'.repeat(1_048_576)}\nthree\n`)
  await run()
  expect(sent).toEqual(['one', 'three'])
  expect(said).toEqual([expect.stringMatching(/^Line 2 of .* is not sent: it has 1,048,576 bytes/)])
})

test('an input belongs to the source that is named, or to the only one', async () => {
  await writeFile(file, '')
  const two = ['orders', 'returns']
  expect(await devInputs([`returns=${file}`], undefined, two)).toEqual([{ source: 'returns', file }])
  expect(await devInputs([file], 'orders', two)).toEqual([{ source: 'orders', file }])
  expect(await devInputs([file], undefined, ['orders'])).toEqual([{ source: 'orders', file }])
  await expect(devInputs([file], undefined, two)).rejects.toThrow(/does not say for which source: write SOURCE=/)
  await expect(devInputs(['orders=-', 'returns=-'], undefined, two)).rejects.toThrow('Only one input can be -')
})
