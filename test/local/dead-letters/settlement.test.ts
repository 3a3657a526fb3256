import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { LoggedDeadLetter } from '../../../lib/local/dead-letters/log.ts'
import { SettlementFile } from '../../../lib/local/dead-letters/settlement.ts'
import { entryAt, scratchDirectory } from './dead-letter-world.ts'

let scratch: Awaited<ReturnType<typeof scratchDirectory>>
let path: string
beforeEach(async () => {
  scratch = await scratchDirectory()
  path = join(scratch.path, 'redriven.ndjson')
})
afterEach(() => scratch.remove())

const letter = (...places: string[]): LoggedDeadLetter => ({ handle: 'h', entry: entryAt('1'), places })

test('what was settled is settled for whoever opens the file later; a newer entry of it is open', async () => {
  const file = await SettlementFile.open(path)
  expect(file.isSettled(letter('s:1'))).toBe(false)
  await file.settle([letter('s:1', 's:2')], 5_000)
  for (const known of [file, await SettlementFile.open(path)]) {
    expect(known.isSettled(letter('s:1', 's:2'))).toBe(true)
    expect(known.isSettled(letter('s:1', 's:2', 's:3'))).toBe(false)
    expect(known.settlementOf(letter('s:1', 's:3'))?.redrivenAtMs).toBe(5_000)
  }
})

test('a line that was cut off settles nothing, and the next one is whole', async () => {
  const file = await SettlementFile.open(path)
  await file.settle([letter('s:1')], 5_000)
  await appendFile(path, '{"id":"x","places":["s:2"')
  const next = await SettlementFile.open(path)
  expect(next.isSettled(letter('s:2'))).toBe(false)
  // Another process may be writing that line.
  expect(await readFile(path, 'utf8')).toMatch(/"s:2"$/)
  await next.settle([letter('s:3')], 6_000)
  const last = await SettlementFile.open(path)
  expect([letter('s:1'), letter('s:2'), letter('s:3')].map((one) => last.isSettled(one))).toEqual([true, false, true])
  expect((await readFile(path, 'utf8')).split('\n')).toHaveLength(3)
})

test('a damaged line stops the start and is named', async () => {
  await writeFile(path, '{"id":"x"}\n')
  await expect(SettlementFile.open(path)).rejects.toThrow(/redriven\.ndjson:1 is damaged, .*: restore the file/)
})

/** A file whose sync ends when, and as, the test says. */
function slowDisk() {
  const steps: string[] = []
  const sync = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  const openFile = async () => ({
    truncate: async () => void steps.push('truncate'),
    writeFile: async (text: string) => void steps.push(`write ${JSON.parse(text).places}`),
    sync: () => {
      steps.push('sync')
      reached.resolve()
      return sync.promise
    },
    close: async () => void steps.push('close'),
  })
  return { steps, sync, reached: reached.promise, openFile }
}

test('invariant 2: a line is written, then synced, and only then is it answered and settled', async () => {
  const { steps, sync, reached, openFile } = slowDisk()
  const file = await SettlementFile.open(path, openFile)
  const settling = file.settle([letter('s:1')], 5_000).then(() => steps.push('answered'))
  // Without a sync the answer comes instead.
  await Promise.race([reached, settling])
  expect(steps).toEqual(['write s:1', 'sync'])
  expect(file.isSettled(letter('s:1'))).toBe(false)
  sync.resolve()
  await settling
  expect(steps).toEqual(['write s:1', 'sync', 'close', 'answered'])
  expect(file.isSettled(letter('s:1'))).toBe(true)
})

test('invariant 2: what the disk refuses to sync is not settled', async () => {
  const { steps, openFile } = slowDisk()
  const sync = () => Promise.reject(new Error('ENOSPC'))
  const file = await SettlementFile.open(path, async () => ({ ...(await openFile()), sync }))
  await expect(file.settle([letter('s:1')], 5_000)).rejects.toThrow('ENOSPC')
  expect(file.isSettled(letter('s:1'))).toBe(false)
  expect(steps.at(-1)).toBe('close')
})
