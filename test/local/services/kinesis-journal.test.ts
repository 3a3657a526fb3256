import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import type { KinesisEffect } from '../../../lib/emulator/kinesis/index.ts'
import { openKinesisJournal, type WriteAt } from '../../../lib/local/services/kinesis-journal.ts'

let directory: string
let path: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-journal-'))
  path = join(directory, 'kinesis.journal')
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const tag = (i: number): KinesisEffect => ({ type: 'tag-set', stream: 's', key: `k${i}`, value: 'é\n🗝️' })

async function write(effects: readonly KinesisEffect[], writeAt?: WriteAt): Promise<void> {
  const journal = await openKinesisJournal(path, () => {}, writeAt)
  for (const effect of effects) journal.add(effect)
  await journal.close()
}

async function read(): Promise<KinesisEffect[]> {
  const effects: KinesisEffect[] = []
  await (await openKinesisJournal(path, (effect) => effects.push(effect))).close()
  return effects
}

describe('the journal of the embedded Kinesis', () => {
  it('gives back every effect in order, bytes included', async () => {
    const records = [
      { shard: 0, partitionKey: '\ud800', data: Buffer.from([0, 255, 10]) },
      { shard: 1, partitionKey: 'é', data: Buffer.alloc(0) },
    ]
    const effects: KinesisEffect[] = [tag(1), { type: 'records-put', stream: 's', atMs: 5, records }, tag(2)]
    await write(effects)
    await write([tag(3)])
    expect(await read()).toEqual([...effects, tag(3)])
  })

  it('reads lines that are longer than what is read at once', async () => {
    const data = Buffer.alloc(3_000_000, 7)
    await write([
      { type: 'records-put', stream: 's', atMs: 5, records: [{ shard: 0, partitionKey: 'k', data }] },
      tag(1),
    ])
    const [first, second] = await read()
    // Buffers of this size are compared by themselves, because toEqual takes seconds for them.
    expect(first?.type === 'records-put' && data.equals(first.records[0]?.data ?? Buffer.alloc(0))).toBe(true)
    expect(second).toEqual(tag(1))
  })

  it('drops a torn last line at every place where it can be torn, and goes on behind what is whole', async () => {
    await write([tag(1)])
    const whole = await readFile(path)
    await write([tag(2)])
    const both = await readFile(path)
    for (let length = whole.length; length < both.length; length += 1) {
      await writeFile(path, both.subarray(0, length))
      expect(await read()).toEqual([tag(1)])
      expect(await readFile(path)).toEqual(whole)
      await write([tag(3)])
      expect(await read()).toEqual([tag(1), tag(3)])
    }
  })

  it('begins anew when even the first line is torn', async () => {
    await write([])
    await writeFile(path, (await readFile(path)).subarray(0, 10))
    await write([tag(1)])
    expect(await read()).toEqual([tag(1)])
  })

  it('names file and line of any other damage, wherever a byte is changed', async () => {
    await write([tag(1), tag(2), tag(3)])
    const whole = await readFile(path)
    const lineStart = whole.indexOf(0x0a) + 1
    const lineEnd = whole.indexOf(0x0a, lineStart)
    for (let place = lineStart; place < lineEnd; place += 1) {
      const damaged = Buffer.from(whole)
      damaged[place] = (damaged[place] ?? 0) ^ 0x01
      await writeFile(path, damaged)
      await expect(read()).rejects.toThrow(`damaged at ${path}:2: `)
      await expect(read()).rejects.toBeInstanceOf(ConfigurationError)
      expect(await readFile(path)).toEqual(damaged)
    }
  })

  it('names file and line of an effect that does not fit what came before', async () => {
    await write([tag(1)])
    const opening = openKinesisJournal(path, () => {
      throw new Error('no such stream')
    })
    await expect(opening).rejects.toThrow(`damaged at ${path}:2: no such stream. Restore the file, or delete it`)
  })

  it('refuses the file of another format or a newer version', async () => {
    await write([])
    const text = '{"format":"millrace-kinesis-journal","version":2}'
    const { crc32 } = await import('node:zlib')
    await writeFile(path, `${crc32(text).toString(16).padStart(8, '0')} ${text}\n`)
    await expect(read()).rejects.toThrow('which this release does not read')
  })

  it('writes in one piece what was added while a write was under way', async () => {
    const pieces: number[] = []
    let release = () => {}
    const journal = await openKinesisJournal(
      path,
      () => {},
      async (file, bytes, position) => {
        pieces.push(bytes.toString().split('\n').length - 1)
        if (pieces.length === 2)
          await new Promise<void>((resolve) => {
            release = resolve
          })
        await file.write(bytes, 0, bytes.length, position)
      },
    )
    journal.add(tag(0))
    const first = journal.saved()
    for (let i = 1; i <= 10; i += 1) journal.add(tag(i))
    const second = journal.saved()
    release()
    await Promise.all([first, second])
    expect(pieces).toEqual([1, 1, 10])
    await journal.close()
    expect(await read()).toHaveLength(11)
  })

  it('saves nothing twice and nothing out of order when a write fails part of the way', async () => {
    let failures = 2
    const journal = await openKinesisJournal(
      path,
      () => {},
      async (file, bytes, position) => {
        if (position > 0 && failures > 0) {
          failures -= 1
          await file.write(bytes, 0, bytes.length - 3, position)
          throw new Error('EIO')
        }
        await file.write(bytes, 0, bytes.length, position)
      },
    )
    journal.add(tag(1))
    await expect(journal.saved()).rejects.toThrow('EIO')
    journal.add(tag(2))
    await expect(journal.saved()).rejects.toThrow('EIO')
    await journal.saved()
    await journal.close()
    expect(await read()).toEqual([tag(1), tag(2)])
  })

  it('does not take a whole line behind damage for a torn one', async () => {
    await write([tag(1)])
    await appendFile(path, 'garbage\n')
    await expect(read()).rejects.toThrow(`damaged at ${path}:3: its checksum does not match`)
  })
})
