import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { InvocationInfo } from '../../../lib/emulator/event-source-mapping/index.ts'
import {
  type PoolInvocation,
  startWorkerPool,
  type WorkerEvent,
  type WorkerPool,
  type WorkerPoolOptions,
} from '../../../lib/local/workers/index.ts'

const fixtures = join(__dirname, '../fixtures')
const info = (shardId = 's0', lane = 0): InvocationInfo => ({
  requestId: 'request-1',
  functionArn: 'arn:aws:lambda:us-east-1:000000000000:function:orders',
  shardId,
  lane,
  attempt: 1,
})

let pool: WorkerPool | undefined
afterEach(async () => {
  await pool?.stop()
  pool = undefined
})

async function start(options: Partial<WorkerPoolOptions> = {}): Promise<WorkerPool> {
  pool = await startWorkerPool({
    size: 1,
    handlerFile: join(fixtures, 'handlers.mjs'),
    environment: {},
    memoryLimitMb: 64,
    // Long, as a busy machine takes its time: what is to time out says so.
    ...{ timeoutMs: 60_000, initTimeoutMs: 60_000 },
    ...options,
  })
  return pool
}

/** Waits for a condition; jest's own time-out ends what never comes true. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('an execution environment', () => {
  test('is loaded once, reused warm, and given context, deadline and only the declared environment', async () => {
    process.env.MILLRACE_TEST_SECRET = 'never inherited'
    const workers = await start({ functionName: 'orders', environment: { TABLE: 'orders' }, timeoutMs: 900_000 })
    await workers.invoke({}, info())
    const outcome = await workers.invoke({ n: 1 }, info())
    expect(outcome).toMatchObject({
      kind: 'answered',
      payload: {
        event: { n: 1 },
        invocations: 2,
        context: {
          awsRequestId: 'request-1',
          functionName: 'orders',
          memoryLimitInMB: '64',
          functionVersion: '$LATEST',
        },
        environment: { TABLE: 'orders', TZ: 'UTC', AWS_LAMBDA_FUNCTION_NAME: 'orders' },
      },
    })
    const { payload } = outcome as { payload: { remainingMs: number; environment: Record<string, string> } }
    expect(payload.remainingMs).toBeGreaterThan(800_000)
    expect(payload.remainingMs).toBeLessThanOrEqual(900_000)
    expect(payload.environment.MILLRACE_TEST_SECRET).toBeUndefined()
    delete process.env.MILLRACE_TEST_SECRET
  })

  test('loads a TypeScript file as it is', async () => {
    const workers = await start({ handlerFile: join(fixtures, 'typed-handler.ts') })
    expect(await workers.invoke({ name: 'Ada' }, info())).toEqual({ kind: 'answered', payload: 'hello Ada' })
  })

  test('takes one invocation at a time; what finds no free worker waits', async () => {
    const workers = await start({ size: 2, handlerName: 'slow' })
    const running = [1, 2, 3].map(() => workers.invoke({ ms: 30 }, info()))
    expect(workers.workers().map((worker) => worker.state)).toEqual(['busy', 'busy'])
    expect(workers.waiting()).toBe(1)
    expect((await Promise.all(running)).map((outcome) => outcome.kind)).toEqual(['answered', 'answered', 'answered'])
  })

  test('forwards what it writes, line by line, with its id', async () => {
    const lines: string[] = []
    const workers = await start({
      handlerName: 'writes',
      onLine: (id, stream, line) => lines.push(`${id} ${stream} ${line}`),
    })
    await workers.invoke({}, info())
    await until(() => lines.length >= 3)
    expect(lines.sort()).toEqual(['w1 stderr a warning', 'w1 stdout first line', 'w1 stdout second line'])
  })
})

describe('a handler that misbehaves is a function error', () => {
  test.each([
    ['throws', 'throwsError', 'TypeError: no such order'],
    ['throws undefined', 'throwsUndefined', 'the handler threw undefined'],
    ['rejects with null', 'rejectsNull', 'the handler threw null'],
    ['answers a circle', 'answersCircle', 'Runtime.MarshalError: Unable to stringify response body'],
    ['answers a BigInt', 'answersBigInt', 'Runtime.MarshalError: Unable to stringify response body'],
    ['answers more than 6 MB', 'answersTooMuch', 'Function.ResponseSizeTooLarge'],
    ['exits', 'exits', 'Runtime.ExitError: the environment ended with status 3'],
    ['exits with success', 'exitsWithSuccess', 'Runtime.ExitError: the environment ended with status 0'],
    ['forgets a rejected promise', 'rejectsInBackground', 'Runtime.ExitError'],
    ['forges answers', 'forgesAnswer', 'process.send is not a function'],
    ['is in callback style', 'callbackStyle', 'Runtime.CallbackHandlerDeprecated'],
    ['is no function', 'notAFunction', 'Runtime.HandlerNotFound'],
    ['is not exported', 'missing', 'Runtime.HandlerNotFound'],
  ])('%s', async (_, handlerName, reason) => {
    const workers = await start({ handlerName })
    expect(await workers.invoke({}, info())).toEqual({
      kind: 'function-error',
      reason: expect.stringContaining(reason),
    })
  })

  test.each(['neverAnswers', 'busyForever'])('%s: killed at the time-out and replaced', async (handlerName) => {
    const workers = await start({ handlerName, timeoutMs: 150 })
    const outcome = await workers.invoke({}, info())
    expect(outcome).toEqual({ kind: 'function-error', reason: 'Task timed out after 0.15 seconds' })
    await until(() => workers.workers()[0]?.state === 'idle')
    expect(workers.workers()).toMatchObject([{ id: 'w2' }])
  })

  test('exceeds its memory limit', async () => {
    const workers = await start({ handlerName: 'fillsMemory', memoryLimitMb: 32 })
    expect(await workers.invoke({}, info())).toEqual({
      kind: 'function-error',
      reason: expect.stringContaining('above its memory limit of 32 MB'),
    })
  }, 60_000)

  test('holds more than its memory limit outside of the heap: killed while it is busy, with what it held', async () => {
    const workers = await start({ handlerName: 'neverAnswers', memoryLimitMb: 128, residentMb: () => 128.2 })
    expect(await workers.invoke({}, info())).toEqual({
      kind: 'function-error',
      reason: 'Runtime.OutOfMemory: the environment holds 129 MB, above its memory limit of 128 MB',
    })
  })

  test.each([
    ['what it holds cannot be told', 128, () => undefined],
    ['it holds no more than the limit', 128, () => 128],
    ['the limit is below the least on Lambda', 127, () => 1_000],
  ])('goes on where %s', async (_, memoryLimitMb, residentMb) => {
    const workers = await start({ handlerName: 'slow', memoryLimitMb, residentMb })
    expect((await workers.invoke({ ms: 250 }, info())).kind).toBe('answered')
  })

  test('throws while it is loaded: every invocation fails with the reason and costs one process', async () => {
    const events: WorkerEvent[] = []
    const handlerFile = join(fixtures, 'throws-at-load.mjs')
    const workers = await start({ handlerFile, onEvent: (event) => events.push(event) })
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const outcome = await workers.invoke({}, info())
      expect(outcome).toEqual({ kind: 'function-error', reason: 'Error: no configuration' })
    }
    expect(events.filter((event) => event.kind === 'init-failed')).toHaveLength(3)
    expect(workers.workers()).toEqual([])
  })

  test('answers nothing: null, which is success', async () => {
    const workers = await start({ handlerName: 'answersNothing' })
    expect(await workers.invoke({}, info())).toEqual({ kind: 'answered', payload: null })
  })

  test('is not touched by Ctrl-C, which a terminal sends to every process of the group', async () => {
    const workers = await start({ handlerName: 'slow' })
    const running = workers.invoke({ ms: 100 }, info())
    process.kill(workers.workers()[0]?.pid ?? 0, 'SIGINT')
    expect((await running).kind).toBe('answered')
    expect(workers.workers()).toMatchObject([{ id: 'w1', state: 'idle' }])
  })

  test('a death leaves the next invocation to the replacement', async () => {
    const workers = await start({ handlerName: 'exitsOnDemand' })
    const [died, next] = await Promise.all([
      workers.invoke({ exit: true }, info()),
      workers.invoke({ exit: false }, info()),
    ])
    expect(died.kind).toBe('function-error')
    expect(next.kind).toBe('answered')
  })
})

describe('a pool with affinity', () => {
  test('keeps each shard with its worker and spreads them evenly', async () => {
    const workers = await start({ size: 3, affinity: 'shards' })
    const shards = Array.from({ length: 6 }, (_, index) => `s${index}`)
    const pids = async () => {
      const outcomes = await Promise.all(shards.map((shard) => workers.invoke({}, info(shard))))
      return outcomes.map((outcome) => (outcome as { payload: { pid: number } }).payload.pid)
    }
    expect(await pids()).toEqual(await pids())
    expect(workers.workers().map((worker) => worker.units.length)).toEqual([2, 2, 2])
  })

  test('kills by request: the orphans go to living workers at once, the others stay, the replacement evens out', async () => {
    const events: WorkerEvent[] = []
    const workers = await start({
      size: 2,
      affinity: 'shards',
      handlerName: 'slow',
      onEvent: (event) => events.push(event),
    })
    await Promise.all(['a', 'b', 'c', 'd'].map((shard) => workers.invoke({ ms: 0 }, info(shard))))
    const [first, second] = workers.workers()
    const inFlight = workers.invoke({ ms: 60_000 }, info(first?.units[0]))
    await workers.kill(first?.id ?? '')
    expect(await inFlight).toEqual({ kind: 'function-error', reason: expect.stringContaining('SIGKILL') })
    const exited = events.find((event) => event.kind === 'exited')
    expect(exited).toMatchObject({ workerId: 'w1', orphans: new Map(first?.units.map((unit) => [unit, 'w2'])) })
    expect(workers.workers().find((worker) => worker.id === 'w2')?.units).toEqual(
      expect.arrayContaining([...(second?.units ?? [])]),
    )
    await until(() => events.some((event) => event.kind === 'moved' && event.workerId === 'w3'))
    expect(workers.workers().map((worker) => worker.units.length)).toEqual([2, 2])
  })

  test('a replacement that is to wait does so only while others live', async () => {
    const workers = await start({ size: 2, affinity: 'shards', handlerName: 'slow', replacementDelayMs: 3_600_000 })
    await Promise.all(['a', 'b'].map((shard) => workers.invoke({ ms: 0 }, info(shard))))
    await workers.kill('w1')
    expect(workers.workers().map(({ id }) => id)).toEqual(['w2'])
    await workers.kill('w2')
    expect((await workers.invoke({ ms: 0 }, info('a'))).kind).toBe('answered')
    expect(workers.workers().map(({ id }) => id)).toEqual(['w3'])
  })

  test('says of every invocation who ran it, when, and what became of it', async () => {
    const invocations: PoolInvocation[] = []
    const workers = await start({ handlerName: 'exitsOnDemand', onInvocation: (one) => invocations.push(one) })
    await workers.invoke({ exit: false }, info('a'))
    await workers.invoke({ exit: true }, info('b'))
    expect(invocations).toMatchObject([
      { workerId: 'w1', event: { exit: false }, info: { shardId: 'a' }, outcome: { kind: 'answered' } },
      { workerId: 'w1', event: { exit: true }, info: { shardId: 'b' }, outcome: { kind: 'function-error' } },
    ])
    for (const { startedAtMs, endedAtMs } of invocations) expect(endedAtMs).toBeGreaterThanOrEqual(startedAtMs)
  })

  test('workers that are added take their share, and nothing else moves', async () => {
    const workers = await start({ size: 1, affinity: 'shards', handlerName: 'slow' })
    await Promise.all(['a', 'b', 'c', 'd'].map((shard) => workers.invoke({ ms: 0 }, info(shard))))
    await workers.addWorkers(1)
    expect(workers.workers().map((worker) => worker.units)).toEqual([
      ['a', 'b'],
      ['d', 'c'],
    ])
  })

  test('lanes of a shard are units of their own', async () => {
    const workers = await start({ size: 2, affinity: 'shards', handlerName: 'slow' })
    await Promise.all([workers.invoke({ ms: 0 }, info('a', 0)), workers.invoke({ ms: 0 }, info('a', 1))])
    expect(
      workers
        .workers()
        .map((worker) => worker.units.join())
        .sort(),
    ).toEqual(['a', 'a/1'])
  })

  test('an unknown worker cannot be killed, and the error names the living ones', async () => {
    const workers = await start()
    await expect(workers.kill('w9')).rejects.toThrow('There is no worker w9: the living ones are w1.')
  })
})

describe('the end', () => {
  test('stop lets what is in flight finish, refuses what waits, and leaves no process', async () => {
    const workers = await start({ handlerName: 'slow' })
    const running = workers.invoke({ ms: 50 }, info())
    const waiting = workers.invoke({ ms: 0 }, info())
    const pids = workers.workers().map((worker) => worker.pid ?? 0)
    await workers.stop()
    expect((await running).kind).toBe('answered')
    expect(await waiting).toEqual({ kind: 'not-run', reason: 'the worker pool is stopped' })
    expect(pids.filter(isAlive)).toEqual([])
    expect((await workers.invoke({}, info())).kind).toBe('not-run')
  })

  test('no worker outlives a parent that is killed, not even in an endless loop', async () => {
    const parent = spawn(process.execPath, [join(fixtures, 'parent.mjs')], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = (await once(parent.stdout, 'data')) as [Buffer]
    const pids = JSON.parse(line.toString()) as number[]
    expect(pids).toHaveLength(2)
    parent.kill('SIGKILL')
    await until(() => pids.filter(isAlive).length === 0)
  }, 60_000)

  test('a file that does not exist and numbers out of range are refused', async () => {
    await expect(start({ handlerFile: '/nowhere/handler.mjs' })).rejects.toThrow('/nowhere/handler.mjs does not exist')
    await expect(start({ size: 0 })).rejects.toThrow('size of the worker pool is 0')
  })
})
