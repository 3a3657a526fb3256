/** The rules of mapping-switches.ts. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  MappingSwitches,
  readDescribedRun,
  readDisabled,
  writeDisabled,
} from '../../../lib/local/files/mapping-switches.ts'

let directory: string
let switches: MappingSwitches | undefined
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-switches-'))
})
afterEach(async () => {
  await switches?.stop()
  await rm(directory, { recursive: true, force: true })
})

/** Every look comes right after the one before. */
const clock = { nowMs: () => 0, sleep: () => new Promise<void>((resolve) => void setImmediate(resolve)) }

function world() {
  const calls: string[] = []
  const problems: string[] = []
  let letEnd: () => void = () => undefined
  const ended = new Promise<void>((resolve) => {
    letEnd = resolve
  })
  const stage = (name: string) => ({
    name,
    bindings: {
      ...{ formatVersion: 1 as const, topology: 'app', sinks: [] },
      sources: [{ name, kind: 'kinesis' as const, streamArn: `arn:${name}` }],
      deadLetters: { kind: 'kinesis' as const, streamName: 'dead' },
    },
    enable: async () => void calls.push(`enable ${name}`),
    disable: async () => {
      calls.push(`disable ${name}`)
      await ended
    },
  })
  const stages = [stage('orders'), stage('by-key')]
  switches = new MappingSwitches({ directory, stages, clock, onProblem: (reason) => void problems.push(reason) })
  return { calls, problems, letEnd: () => letEnd(), switches }
}

const states = async () => (await readDescribedRun(directory))?.stages.map(({ state }) => state)
async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isSo())) await clock.sleep()
}

test('a run begins with what the last one left disabled, and describes itself (1, 2)', async () => {
  await writeDisabled(directory, ['by-key'])
  const { calls, switches: made } = world()
  await made.start()
  expect(calls).toEqual(['enable orders'])
  const described = await readDescribedRun(directory)
  expect([described?.pid, described?.stages.map(({ bindings }) => bindings.sources[0]?.name)]).toEqual([
    process.pid,
    ['orders', 'by-key'],
  ])
  expect(await states()).toEqual(['Enabled', 'Disabled'])
})

test('Disabled is said when nothing is in flight any more, and it goes on when it is enabled (3)', async () => {
  const { calls, letEnd, switches: made } = world()
  await made.start()
  await writeDisabled(directory, ['orders'])
  await until(() => calls.includes('disable orders'))
  expect(await states()).toEqual(['Disabling', 'Enabled'])
  letEnd()
  await until(async () => (await states())?.[0] === 'Disabled')
  await writeDisabled(directory, [])
  await until(async () => (await states())?.[0] === 'Enabled')
  expect(calls).toEqual(['enable orders', 'enable by-key', 'disable orders', 'enable orders'])
})

test('a file that cannot be read is said once and changes nothing (4)', async () => {
  const { calls, problems, letEnd, switches: made } = world()
  await made.start()
  await writeFile(join(directory, 'disabled.json'), '{"stages":')
  await until(() => problems.length > 0)
  expect(problems).toEqual([expect.stringContaining('delete it, and all are enabled')])
  await expect(readDisabled(directory)).rejects.toThrow(/does not say which stages are disabled/)
  expect(await states()).toEqual(['Enabled', 'Enabled'])
  letEnd()
  await writeDisabled(directory, ['by-key'])
  await until(() => calls.includes('disable by-key'))
  expect(problems).toHaveLength(1)
})
