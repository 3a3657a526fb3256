import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import type { Clock } from '../../../lib/core/clock.ts'
import { FunctionLog } from '../../../lib/local/files/function-log.ts'

/** A disk that can be full, and what it holds; each attempt is counted. */
function disk() {
  const state = { isFull: false, text: '', attempts: 0 }
  const append = async (_: string, text: string) => {
    state.attempts += 1
    if (state.isFull) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
    state.text += text
  }
  return { state, append }
}

/** A clock whose sleepers wake when the test says so, or at their signal. */
function handClock() {
  const sleepers: (() => void)[] = []
  const clock: Clock = {
    nowMs: () => 0,
    sleep: (_, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve()
        signal?.addEventListener('abort', () => resolve(), { once: true })
        sleepers.push(resolve)
      }),
  }
  const asleep = async () => {
    while (sleepers.length === 0) await Promise.resolve()
  }
  return { clock, asleep, wake: () => sleepers.shift()?.() }
}

test('lines are in the file in their order, behind those of earlier runs', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-log-'))
  const path = join(folder, 'function.log')
  for (const run of ['first', 'second']) {
    const log = new FunctionLog(path, { clock: systemClock })
    for (let index = 0; index < 100; index++) log.write(`${run} ${index}`)
    await log.close()
  }
  const lines = ['first', 'second'].flatMap((run) => Array.from({ length: 100 }, (_, index) => `${run} ${index}`))
  expect(await readFile(path, 'utf8')).toBe(`${lines.join('\n')}\n`)
  await rm(folder, { recursive: true })
})

test('a log that could not be written for a while goes on, and nothing is missing', async () => {
  const { state, append } = disk()
  const { clock, asleep, wake } = handClock()
  state.isFull = true
  const log = new FunctionLog('function.log', { clock, append })
  log.write('one')
  await asleep()
  log.write('two')
  wake()
  await asleep()
  state.isFull = false
  wake()
  log.write('three')
  await log.close()
  expect(state.text).toBe('one\ntwo\nthree\n')
})

test('lines beyond the limit are counted and told of where they are missing', async () => {
  const { state, append } = disk()
  const { clock, asleep, wake } = handClock()
  state.isFull = true
  const log = new FunctionLog('function.log', { clock, append, mostWaiting: 300 })
  const line = 'x'.repeat(100)
  for (const end of [1, 2, 3, 4]) log.write(`${line}${end}`)
  log.write('short, and lost as what it follows')
  await asleep()
  state.isFull = false
  wake()
  while (!state.text.includes('lost')) await Promise.resolve()
  log.write('six')
  await log.close()
  expect(state.text).toBe(
    `${line}1\n${line}2\n(3 lines are lost here: function.log cannot be written: the disk is full; free some space and the run goes on)\nsix\n`,
  )
})

test('closing tries once more and does not wait for a disk that stays full', async () => {
  const { state, append } = disk()
  const { clock, asleep } = handClock()
  state.isFull = true
  const log = new FunctionLog('function.log', { clock, append })
  log.write('one')
  await asleep()
  const before = state.attempts
  await log.close()
  expect(state.attempts).toBe(before + 1)
  expect(state.text).toBe('')
})
