import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../../../lib/core/clock.ts'
import { ProgressFile } from '../../../lib/local/files/progress-file.ts'

const never = new AbortController().signal
const silent = () => undefined
const noSpace = () => Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })

/** A clock that does not wait, and remembers how long it was to. */
function sleepless() {
  const pausesMs: number[] = []
  const clock: Clock = { nowMs: () => 0, sleep: async (ms) => void pausesMs.push(ms) }
  return { clock, pausesMs }
}

/** A disk on which every write waits until the test settles it. */
function slowDisk() {
  const writes: { value: number; done: () => void; fail: () => void }[] = []
  const replace = (_: string, text: string) =>
    new Promise<void>((resolve, reject) => {
      writes.push({ value: JSON.parse(text), done: resolve, fail: () => reject(noSpace()) })
    })
  return { writes, replace }
}

test('the file holds the newest value, whole, and nothing else lies around', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-progress-'))
  const path = join(folder, 'run', 'progress.json')
  const file = new ProgressFile<number>(path, sleepless().clock)
  expect(await file.save(1, { signal: never, onBlocked: silent })).toBe(true)
  expect(await file.save(2, { signal: never, onBlocked: silent })).toBe(true)
  expect(JSON.parse(await readFile(path, 'utf8'))).toBe(2)
  expect(await readdir(join(folder, 'run'))).toEqual(['progress.json'])
  await rm(folder, { recursive: true })
})

test('a save that meets a write resolves only when its own value is written', async () => {
  const { writes, replace } = slowDisk()
  const file = new ProgressFile<number>('p', sleepless().clock, replace)
  const resolved: number[] = []
  const saves = [1, 2, 3].map((value) =>
    file.save(value, { signal: never, onBlocked: silent }).then(() => resolved.push(value)),
  )
  writes[0]?.done()
  await saves[0]
  expect(resolved).toEqual([1])
  while (writes.length < 2) await Promise.resolve()
  expect(writes[1]?.value).toBe(3)
  writes[1]?.done()
  await Promise.all(saves)
  expect(writes).toHaveLength(2)
})

test('what fails is written again with the newest value, ever less often, and each save hears why', async () => {
  const { clock, pausesMs } = sleepless()
  const texts: string[] = []
  const file = new ProgressFile<number>('progress.json', clock, async (_, text) => {
    texts.push(text)
    if (texts.length < 9) throw noSpace()
  })
  const shown: (string | undefined)[] = []
  await file.save(7, { signal: never, onBlocked: (problem) => void shown.push(problem) })
  expect(pausesMs).toEqual([100, 200, 400, 800, 1_600, 3_200, 3_200, 3_200])
  const problem = 'progress.json cannot be written: the disk is full; free some space and the run goes on'
  expect(shown).toEqual([...Array(8).fill(problem), undefined])
})

test('the signal ends the attempts after one more, and the next save begins anew', async () => {
  const controller = new AbortController()
  let attempts = 0
  let isFull = true
  const file = new ProgressFile<number>('p', sleepless().clock, async () => {
    attempts += 1
    if (isFull) throw noSpace()
  })
  expect(await file.save(1, { signal: controller.signal, onBlocked: () => controller.abort() })).toBe(false)
  expect(attempts).toBe(2)
  isFull = false
  expect(await file.save(2, { signal: never, onBlocked: silent })).toBe(true)
})
