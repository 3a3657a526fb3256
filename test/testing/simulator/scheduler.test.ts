import { newOwner } from '../../../lib/testing/simulator/scheduler.ts'
import { run, scheduler, settle } from './simulator-world.ts'

test('a call waits for its turn before its effect and after it', async () => {
  const clocked = scheduler()
  const happened: string[] = []
  void clocked.call(newOwner('a'), 'call', () => happened.push('effect')).then(() => happened.push('answer'))
  await settle()
  expect(happened).toEqual([])
  await clocked.step()
  expect(happened).toEqual(['effect'])
  await clocked.step()
  expect(happened).toEqual(['effect', 'answer'])
})

test('an effect that rejects reaches the caller, also as a throw', async () => {
  const clocked = scheduler()
  const owner = newOwner('a')
  const failures = Promise.allSettled([
    clocked.call(owner, 'rejects', async () => {
      throw new Error('one')
    }),
    clocked.call(owner, 'throws', () => {
      throw new Error('two')
    }),
  ])
  await run(clocked)
  expect((await failures).map((failure) => failure.status === 'rejected' && failure.reason.message)).toEqual([
    'one',
    'two',
  ])
})

test('another seed gives another order, the same seed the same', async () => {
  const orderOf = async (seed: number) => {
    const clocked = scheduler(seed)
    const order: number[] = []
    for (let i = 0; i < 12; i++) void clocked.call(newOwner(String(i)), 'call', () => order.push(i))
    await run(clocked)
    return order
  }
  expect(await orderOf(3)).toEqual(await orderOf(3))
  expect(await orderOf(3)).not.toEqual(await orderOf(4))
})

test('whoever is dead is never answered and its timers never ring', async () => {
  const clocked = scheduler()
  const owner = newOwner('a')
  const heard: string[] = []
  void clocked.call(owner, 'call', () => 'effect').then((answer) => heard.push(answer))
  clocked.timer(owner, 100, () => heard.push('timer'))
  await clocked.step()
  owner.isDead = true
  await run(clocked)
  expect(heard).toEqual([])
})

test('an effect takes place although its caller dies before the answer', async () => {
  const clocked = scheduler()
  const owner = newOwner('a')
  let effects = 0
  void clocked.call(owner, 'write', () => effects++)
  clocked.interfere = (of, phase) => {
    if (phase === 'after') of.isDead = true
  }
  await run(clocked)
  expect(effects).toBe(1)
})

test('time moves to the next timer where nothing else can happen; timers ring in the order of their times', async () => {
  const clocked = scheduler()
  const rung: [string, boolean][] = []
  const owner = newOwner('a')
  const ring = (name: string, dueMs: number) => () => rung.push([name, clocked.nowMs() >= dueMs])
  clocked.timer(owner, 90_000, ring('second', 90_000))
  clocked.timer(owner, 60_000, ring('first', 60_000))
  const cancel = clocked.timer(owner, 70_000, ring('cancelled', 70_000))
  cancel()
  await run(clocked)
  expect(rung).toEqual([
    ['first', true],
    ['second', true],
  ])
  expect(clocked.elapsedMs).toBeLessThan(100_000)
})

test('who is frozen goes on later, and others meanwhile; its timers are late by as much', async () => {
  const clocked = scheduler()
  const [frozen, other] = [newOwner('frozen'), newOwner('other')]
  const order: [string, number][] = []
  const note = (name: string) => () => order.push([name, Math.floor(clocked.elapsedMs / 1_000)])
  void clocked.call(frozen, 'call', note('frozen'))
  clocked.timer(frozen, 1_000, note('its timer'))
  clocked.freeze(frozen, 60_000)
  void clocked.call(other, 'call', note('other'))
  await run(clocked)
  expect(order).toEqual([
    ['other', 0],
    ['frozen', 60],
    ['its timer', 61],
  ])
})

test('a sleep ends at its time or with its signal', async () => {
  const clocked = scheduler()
  const clock = clocked.clockOf(newOwner('a'))
  const abort = new AbortController()
  const woken: string[] = []
  void clock.sleep(1_000).then(() => woken.push('slept'))
  void clock.sleep(1_000_000, abort.signal).then(() => woken.push('aborted'))
  abort.abort()
  await settle()
  expect(woken).toEqual(['aborted'])
  await run(clocked)
  expect(woken).toEqual(['aborted', 'slept'])
})
