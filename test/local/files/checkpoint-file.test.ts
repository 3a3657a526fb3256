import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import { CheckpointFile } from '../../../lib/local/files/checkpoint-file.ts'

const after = (sequenceNumber: string) => ({ position: { at: 'after', sequenceNumber } as const, drained: false })

let folder: string
let path: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-checkpoints-'))
  path = join(folder, 'run', 'checkpoints.json')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test('what was saved is loaded by the next run, and nothing else lies around', async () => {
  const file = new CheckpointFile(path)
  expect(await file.load()).toEqual(new Map())
  await Promise.all([file.save('s0', after('1')), file.save('s1', { ...after('7'), drained: true })])
  await file.save('s0', after('49600000000000000000000000000000000000000000000000000002'))
  expect(await new CheckpointFile(path).load()).toEqual(
    new Map([
      ['s0', after('49600000000000000000000000000000000000000000000000000002')],
      ['s1', { ...after('7'), drained: true }],
    ]),
  )
  expect(await readdir(join(folder, 'run'))).toEqual(['checkpoints.json'])
})

test('a save resolves only after its own value is in the file, also among many at once', async () => {
  const file = new CheckpointFile(path)
  const saves = Array.from({ length: 50 }, async (_, index) => {
    await file.save(`s${index % 5}`, after(String(index)))
    const { shards } = JSON.parse(await readFile(path, 'utf8'))
    expect(Number(shards[`s${index % 5}`].position.sequenceNumber)).toBeGreaterThanOrEqual(index)
  })
  await Promise.all(saves)
})

test('checkpoints loaded for other shards survive a save', async () => {
  await new CheckpointFile(path).save('s0', after('1'))
  const next = new CheckpointFile(path)
  await next.load()
  await next.save('s1', after('2'))
  expect((await new CheckpointFile(path).load()).size).toBe(2)
})

test.each([
  ['cut JSON', '{"version":1,"sha', 'is not JSON'],
  ['an empty file', '', 'is not JSON'],
  ['null', 'null', 'holds no checkpoints'],
  ['a newer format', '{"version":2,"shards":{}}', 'from a newer Millrace'],
  [
    'a broken position',
    '{"version":1,"shards":{"s0":{"position":{"at":"after"},"drained":false}}}',
    'checkpoint for s0',
  ],
])('%s is one clear error that names the file and the remedy', async (_, text, problem) => {
  await new CheckpointFile(path).save('s0', after('1'))
  await writeFile(path, text)
  const loading = new CheckpointFile(path).load()
  await expect(loading).rejects.toBeInstanceOf(ConfigurationError)
  await expect(loading).rejects.toThrow(path)
  await expect(loading).rejects.toThrow(problem)
  await expect(loading).rejects.toThrow('delete the file')
})

test('a write that fails rejects and keeps the old file; the next one saves what was missed', async () => {
  const file = new CheckpointFile(path)
  await file.save('s0', after('1'))
  // A folder where the temporary file should be makes the write fail for any user.
  const { mkdir } = await import('node:fs/promises')
  await mkdir(`${path}.tmp`)
  await expect(file.save('s0', after('2'))).rejects.toThrow(`${path} cannot be written`)
  expect((await new CheckpointFile(path).load()).get('s0')).toEqual(after('1'))
  await rm(`${path}.tmp`, { recursive: true })
  await file.save('s1', after('3'))
  expect((await new CheckpointFile(path).load()).get('s0')).toEqual(after('2'))
})

const fullDevice = process.platform === 'linux' ? test : test.skip
fullDevice('a full disk says so', async () => {
  const file = new CheckpointFile(path)
  const { mkdir, symlink } = await import('node:fs/promises')
  await mkdir(join(folder, 'run'))
  await symlink('/dev/full', `${path}.tmp`)
  await expect(file.save('s0', after('2'))).rejects.toThrow('the disk is full')
})
