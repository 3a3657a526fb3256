import { MillraceProject } from './millrace-project.ts'

const timeoutMs = 240_000
let project: MillraceProject

beforeEach(async () => {
  project = await MillraceProject.create()
})
afterEach(() => project.clear())

const topology = ({ name = 'app', slots = 64, stage = 'by-line', sinks = ['out'] } = {}) => `
  import { Topology, text, valueState } from 'millrace'
  export const app = new Topology('${name}')
  const source = app.source('lines', text())
  for (const sink of ${JSON.stringify(sinks)}) source.to(app.sink<string>(sink))
  source.keyBy('${stage}', (line) => line, { slots: ${slots} }).process('count', {
    state: { seen: valueState<number>() },
    step: (_, { state }) => void state.seen.set(1),
  })
`

test(
  'records what a topology keeps, and refuses what would lose it until that is accepted by its name',
  async () => {
    const { result } = project
    const run = (...args: readonly string[]) => result.call(project, 'lock', ...args)
    expect(await run()).toMatchObject({ code: 2, stderr: expect.stringContaining('needs TOPOLOGY') })

    await project.write('app/topology.ts', topology())
    expect(await run('app/topology.ts')).toMatchObject({
      code: 0,
      stdout: 'app: 2 stages, 1 state, 1 sink, recorded for the first time\n',
    })
    const recorded = await project.read('millrace.lock.json')
    expect(JSON.parse(recorded).topologies.app.file).toBe('app/topology.ts')
    expect(await run('--check')).toMatchObject({ code: 0, stdout: 'app: 2 stages, 1 state, 1 sink, as before\n' })

    await project.write('app/topology.ts', topology({ sinks: ['out', 'more'] }))
    const unrecorded = await run('--check')
    expect(unrecorded).toMatchObject({ code: 1, stderr: expect.stringContaining('run `millrace lock`, and commit it') })
    expect(await project.read('millrace.lock.json')).toBe(recorded)
    expect(await run()).toMatchObject({ code: 0, stdout: 'app: 2 stages, 1 state, 2 sinks, changed\n' })

    await project.write('app/topology.ts', topology({ slots: 8 }))
    const refused = await run()
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toMatch(/\n- stage "by-line" has 8 slots instead of 64: .*\n- sink "more" is gone: /)
    expect(await run('--accept', 'more')).toMatchObject({ code: 1, stderr: expect.not.stringContaining('sink') })
    expect(await run('--accept', 'more', '--accept', 'by-line')).toMatchObject({ code: 0 })
    expect(JSON.parse(await project.read('millrace.lock.json')).topologies.app).toMatchObject({
      sinks: { out: {} },
      stages: { 'by-line': { slots: 8 } },
    })
    expect(await run('--accept', 'more')).toMatchObject({ code: 2, stderr: expect.stringContaining('names nothing') })
  },
  timeoutMs,
)

test(
  'keeps several topologies in one file, and takes a topology of another name in the same file for a rename',
  async () => {
    await project.write('one.ts', topology({ name: 'one' }))
    await project.write('two.ts', topology({ name: 'two' }))
    for (const file of ['one.ts', 'two.ts']) {
      expect(await project.result('lock', file, '--lock', 'all.json')).toMatchObject({ code: 0 })
    }
    await project.write('one.ts', topology({ name: 'uno' }))
    const refused = await project.result('lock', '--lock', 'all.json')
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('topology "one" of one.ts is called "uno"'),
    })
    expect(await project.result('lock', '--lock', 'all.json', '--accept', 'one')).toMatchObject({ code: 0 })
    expect(Object.keys(JSON.parse(await project.read('all.json')).topologies)).toEqual(['two', 'uno'])
  },
  timeoutMs,
)

test(
  'completes a file of a release that recorded no aggregators, and from then on refuses one that becomes another',
  async () => {
    const windows = (aggregators: string) => `
      import { count, minutes, sum, text, Topology, tumbling } from 'millrace'
      export const app = new Topology('app')
      const out = app.sink<unknown>('out')
      const perLine = app.source('lines', text()).keyBy('by-line', (line) => line)
        .window(tumbling(minutes(5), { grace: minutes(1) }))
        .aggregate('per-line', ${aggregators}, { emit: 'final' })
      perLine.results.to(out)
      perLine.late.to(out)
    `
    await project.write('topology.ts', windows('{ x: count() }'))
    expect(await project.result('lock', 'topology.ts')).toMatchObject({ code: 0 })
    const whole = await project.read('millrace.lock.json')
    const lock = JSON.parse(whole)
    const operator = lock.topologies.app.stages['by-line'].operators['per-line']
    expect(operator.aggregators).toEqual({ x: 'count' })
    delete operator.aggregators
    await project.write('millrace.lock.json', `${JSON.stringify(lock, undefined, 2)}\n`)
    expect(await project.result('lock')).toMatchObject({
      code: 0,
      stdout: 'app: 2 stages, 1 state, 1 sink, changed\n',
    })
    expect(await project.read('millrace.lock.json')).toBe(whole)

    await project.write('topology.ts', windows('{ x: sum((line) => line.length) }'))
    const refused = await project.result('lock')
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain(
      '- aggregator "x" of state "per-line" of stage "by-line" is sum instead of count: what open windows have gathered would be misread. Give the new aggregator another name.',
    )
    expect(await project.result('lock', '--accept', 'per-line')).toMatchObject({ code: 0 })
  },
  timeoutMs,
)
