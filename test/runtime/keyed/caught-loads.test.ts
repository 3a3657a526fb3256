/** A step that catches what its views throw: what is not loaded is loaded all the same, and the step runs again. */
import fc from 'fast-check'
import { z } from 'zod'
import { minutes } from '../../../lib/core/duration.ts'
import { TerminalError } from '../../../lib/core/errors.ts'
import { eventTimer, mapState, Topology, valueState } from '../../../lib/index.ts'
import { plan, stageNamed } from '../../../lib/plan/plan.ts'
import { createRunner } from '../../../lib/runtime/runner.ts'
import { TestDriver } from '../../../lib/testing/test-driver.ts'
import { epochMs } from '../../../lib/time/event-time.ts'
import { StageWorld } from '../stage-world.ts'
import { adder, type Context, type KeyedOptions, type Step, type Value, value } from './keyed-world.ts'

/** Each reads the entry `x` or all entries, adds to `x`, and answers what goes wrong instead of letting it pass. */
const catching: { readonly [name: string]: Step } = {
  'returns other outputs': (given, context) => {
    try {
      return [counted(given, context)]
    } catch (error) {
      return [`failed: ${(error as Error).name}`]
    }
  },
  'writes another state instead': (given, context) => {
    try {
      return [counted(given, context)]
    } catch {
      context.state.blob.set('unknown')
      return []
    }
  },
  'throws an error of its own': (given, context) => {
    try {
      return [counted(given, context)]
    } catch (cause) {
      throw new TerminalError('the count is broken', { cause })
    }
  },
  'is a generator': (given, context) =>
    (function* () {
      try {
        yield counted(given, context)
      } catch {
        yield 'failed'
      }
    })() as unknown as unknown[],
  'lists its entries': (given, context) => {
    let known = -1
    try {
      known = context.state.byEntry.entries().length
    } catch {}
    context.state.byEntry.set(`n${given.n}`, 1)
    return [known]
  },
  'asks whether there is one, and deletes it': (given, { state }) => {
    let had: boolean | undefined
    try {
      had = state.byEntry.has('x')
      state.byEntry.delete('x')
      if (!had) state.byEntry.set('x', given.n)
    } catch {
      state.blob.set('unknown')
    }
    return [{ had }]
  },
}

function counted({ n }: Value, { state }: Context): number {
  const sum = (state.byEntry.get('x') ?? 0) + n
  state.byEntry.set('x', sum)
  return sum
}

/** What a world has published and kept after these values, each in a batch of its own. */
async function outcome(step: Step, values: readonly Value[], isCold: boolean, options: KeyedOptions = {}) {
  const { world, received } = adder(step, options)
  const warm = world.container()
  for (const given of values) world.frame([given])
  for (const n of values.keys()) expect(await world.run(isCold ? world.container() : warm, n, n + 1)).toBe(n + 1)
  const entries = await world.store.listEntries('a', 'adder.byEntry', new AbortController().signal)
  return {
    received: received(),
    taken: world.taken(),
    state: await world.stateOf('a'),
    entries: [...entries].filter(([, item]) => item.value !== undefined).map(([name, item]) => [name, item.value]),
    deadLetters: world.memory.deadLettered.length,
  }
}

describe.each(Object.entries(catching))('a step that %s', (_name, step) => {
  test('does in a cold environment what it does in a warm one', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 5 }), async (numbers) => {
        const values = numbers.map((n) => value('a', n))
        const warm = await outcome(step, values, false)
        expect(warm.deadLetters).toBe(0)
        expect(JSON.stringify(warm)).not.toMatch(/failed|unknown/)
        expect(await outcome(step, values, true)).toEqual(warm)
        const prefetch = () => ({ byEntry: ['y', 'x'] })
        expect(await outcome(step, values, true, { prefetch })).toEqual(warm)
      }),
      { numRuns: 10 },
    )
  })
})

test("a value of a newer release, too, is not the step's to answer: its record waits for that release", async () => {
  const stage = (version: 1 | 2) => {
    const app = new Topology('releases')
    const source = app.source('values', z.object({ key: z.string(), n: z.number() }))
    const sum =
      version === 1 ? valueState<number>() : valueState<number>({ version, upcast: { 1: (old) => old as number } })
    const out = app.sink<unknown>('out')
    source
      .keyBy('by-key', ({ key }) => key, { slots: 1 })
      .process('adder', {
        state: { sum },
        step: ({ n }, { state }): unknown[] => {
          try {
            state.sum.set((state.sum.get() ?? 0) + n)
          } catch {
            return ['failed']
          }
          return [state.sum.get()]
        },
      })
      .to(out)
    return { app, out }
  }
  const { app, out } = stage(2)
  const world = new StageWorld(app, 'by-key')
  world.frame([value('a', 1)])
  world.frame([value('a', 2)])
  expect(await world.run(world.container(), 0, 1)).toBe(1)
  const older = plan(stage(1).app)
  const runner = createRunner(older.topology, stageNamed(older, 'by-key'), world.ports())
  expect(await world.run(runner, 1)).toBe(1)
  expect(world.error).toMatchObject({ code: 'newer-schema' })
  expect(await world.run(world.container(), 1)).toBe(2)
  expect(world.memory.received(out)).toEqual([1, 3])
})

test('a step with a try around it counts as one without', async () => {
  const values = [1, 2, 3, 4].map((n) => value('a', n))
  const plain: Step = (given, context) => [counted(given, context)]
  const caught = catching['returns other outputs'] as Step
  for (const isCold of [false, true])
    expect(await outcome(caught, values, isCold)).toEqual(await outcome(plain, values, isCold))
})

describe('a timer', () => {
  const record = z.object({ k: z.string(), at: z.number(), isBell: z.boolean() })
  const startMs = Date.UTC(2026, 0, 1)

  /** A timer whose function catches what its views throw; behind it in the same step comes a record of the key. */
  const ringing = async (warmKeys: number) => {
    const app = new Topology('bells')
    const source = app.source('records', record, { eventTime: epochMs(({ at }) => at), outOfOrderness: minutes(0) })
    const out = app.sink<string>('out')
    source
      .keyBy('by-key', ({ k }) => k)
      .process('bells', {
        state: { m: mapState<number>(), last: valueState<number>() },
        timers: { bell: eventTimer() },
        step: ({ at, isBell }, { timers, state }): string[] => {
          state.last.set(at)
          if (isBell) timers.bell.set(at + 60_000)
          return []
        },
        onTimer: {
          bell: (_timeMs, { state }) => {
            try {
              const rung = (state.m.get('rung') ?? 0) + 1
              state.m.set('rung', rung)
              return [`rung ${rung}`]
            } catch {
              throw new TerminalError('the bell is broken')
            }
          },
        },
      })
      .to(out)
    const driver = new TestDriver(app, { nowMs: startMs + 3_600_000, warmKeys })
    const send = (k: string, minute: number, isBell: boolean) =>
      driver.send(source, [{ k, at: startMs + minute * 60_000, isBell }])
    await send('a', 0, true)
    await send('a', 2, true)
    await send('b', 4, false)
    await send('a', 5, true)
    await driver.advanceEventTime(minutes(30))
    return {
      received: driver.received(out),
      deadLetters: driver.deadLetters.length,
      state: await driver.stateOf('by-key', 'a'),
    }
  }

  test('that catches them fires as one that does not, beside its own records and those of others', async () => {
    const warm = await ringing(20_000)
    expect(warm).toMatchObject({ received: ['rung 1', 'rung 2'], deadLetters: 0 })
    expect(await ringing(0)).toEqual(warm)
  })
})
