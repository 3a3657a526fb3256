import { mkdtemp, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WatchedFiles } from '../../../bin/cli/watched-files.ts'

let directory: string
let file: string
const writtenMs = 1_000_000

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-watch-'))
  file = join(directory, 'a.ts')
  await write('one', writtenMs)
})
afterEach(() => rm(directory, { recursive: true }))

async function write(text: string, atMs: number): Promise<void> {
  await writeFile(file, text)
  await utimes(file, new Date(atMs), new Date(atMs))
}

test('a change is told once, and only when the file has stayed as it is', async () => {
  const watched = new WatchedFiles()
  await watched.follow([file], writtenMs + 1)
  expect([await watched.haveChanged(), await watched.haveChanged()]).toEqual([false, false])
  await write('half', writtenMs + 1_000)
  expect(await watched.haveChanged()).toBe(false)
  await write('whole', writtenMs + 2_000)
  expect(await watched.haveChanged()).toBe(false)
  expect([await watched.haveChanged(), await watched.haveChanged()]).toEqual([true, false])
})

test('a save during the compilation counts as a change', async () => {
  const watched = new WatchedFiles()
  await watched.follow([file], writtenMs)
  expect([await watched.haveChanged(), await watched.haveChanged()]).toEqual([false, true])
  // Also the next time: what is compared is the state from before the compilation.
  await write('during', writtenMs + 1_000)
  await watched.follow([file], writtenMs + 2_000)
  expect([await watched.haveChanged(), await watched.haveChanged()]).toEqual([false, true])
})

test('a file that is replaced or goes away has changed', async () => {
  const watched = new WatchedFiles()
  await watched.follow([file], writtenMs + 1)
  await writeFile(join(directory, 'b.ts'), 'one')
  await utimes(join(directory, 'b.ts'), new Date(writtenMs), new Date(writtenMs))
  await rename(join(directory, 'b.ts'), file)
  expect([await watched.haveChanged(), await watched.haveChanged()]).toEqual([false, true])
  await rm(file)
  expect([await watched.haveChanged(), await watched.haveChanged()]).toEqual([false, true])
})
