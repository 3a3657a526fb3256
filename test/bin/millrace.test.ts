import { resolve } from 'node:path'
import { MillraceProject } from './millrace-project.ts'

const timeoutMs = 240_000
let project: MillraceProject

beforeEach(async () => {
  project = await MillraceProject.create()
})
afterEach(() => project.clear())

async function lines(...args: readonly string[]) {
  const { code, stdout, stderr } = await project.result(...args)
  return [code, stdout, stderr]
}

test(
  'what is mistyped is one line with the nearest that there is, and exit code 2',
  async () => {
    const help = (command: string) => `\`millrace ${command} --help\` lists what it takes.\n`
    expect(await lines('paln')).toEqual([
      2,
      '',
      'millrace: There is no command `millrace paln`. Did you mean `millrace plan`?\n',
    ])
    expect(await lines('xyzzy')).toEqual([
      2,
      '',
      'millrace: There is no command `millrace xyzzy`. `millrace help` lists the commands.\n',
    ])
    expect(await lines('dead-letters', 'redrvie')).toEqual([
      2,
      '',
      'millrace: There is no command `millrace dead-letters redrvie`. Did you mean `millrace dead-letters redrive`?\n',
    ])
    expect(await lines('dead-letters')).toEqual([
      2,
      '',
      'millrace: `millrace dead-letters` needs one of list, show, redrive.\n',
    ])
    expect(await lines('plan', 'x.ts', '--mermiad')).toEqual([
      2,
      '',
      `millrace: \`millrace plan\` has no flag --mermiad: did you mean --mermaid? ${help('plan')}`,
    ])
    expect(await lines('plan')).toEqual([2, '', `millrace: \`millrace plan\` needs TOPOLOGY. ${help('plan')}`])
    expect(await lines('dev', 'x.ts', '--input')).toEqual([
      2,
      '',
      `millrace: --input needs a value: --input FILE. ${help('dev')}`,
    ])
  },
  timeoutMs,
)

test(
  'help lists the commands, and each command its flags',
  async () => {
    const overview = await project.result('help')
    expect(overview.code).toBe(0)
    for (const command of ['dev TOPOLOGY', 'plan TOPOLOGY', 'dead-letters list', 'dead-letters redrive']) {
      expect(overview.stdout).toContain(`  millrace ${command} `)
    }
    for (const typed of [
      ['dev', '--help'],
      ['help', 'dev'],
    ]) {
      const { code, stdout } = await project.result(...typed)
      expect([code, stdout]).toEqual([0, expect.stringMatching(/^millrace dev TOPOLOGY \[flags\]\n {2}--input FILE /m)])
    }
    const group = await project.result('dead-letters', '--help')
    expect(group.stdout.match(/^millrace dead-letters \w+/gm)).toHaveLength(3)
    expect((await project.result()).code).toBe(2)
  },
  timeoutMs,
)

test(
  'plan prints the topology, its stages, warnings and hints, or a flowchart',
  async () => {
    const file = resolve('functions/flights/topology.ts')
    const { code, stdout, stderr } = await project.result('plan', file)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^topology "flights-app"\n {2}source "flights" \(json, validated by zod, /)
    expect(stdout).toContain('2 stages, one Lambda function each:\n  flights: feeding; feeds by-origin; writes to ')
    expect(stdout).toContain(
      '; enriched from airports (static)\n    keeps its progress in table flights-app-flights-state\n  by-origin: keyed, ',
    )
    await project.write(
      'hint.ts',
      "import { text, Topology } from 'millrace'\nexport const app = new Topology('a')\napp.source('s', text()).keyBy('by', (t) => t).to(app.sink('k'))\n",
    )
    expect((await project.result('plan', 'hint.ts')).stdout).toMatch(/\nhints:\n {2}source "s" > keyBy "by": no step/)
    await project.write(
      'warning.ts',
      "import { text, Topology } from 'millrace'\nconst self = (t: string) => t\nexport const app = new Topology('a')\napp.source('s', text()).keyBy('by', self).reduce('r', self, { emit: 'per-batch' }).map(self).keyBy('again', self).reduce('l', self, { emit: 'on-update' }).to(app.sink('k'))\n",
    )
    expect((await project.result('plan', 'warning.ts')).stdout).toMatch(
      /\nwarnings:\n {2}source "s" > .* of each key and batch it gets the last result of reduce "r" only/,
    )
    expect((await project.result('plan', 'hint.ts', '--mermaid')).stdout).toMatch(/^flowchart LR\n/)
  },
  timeoutMs,
)

test(
  'plan --cost counts the topics of keyed stages where it is told of them, and there are any',
  async () => {
    const flags = ['--cost', '--rate', '100', '--keyed-topics']
    const { code, stdout } = await project.result('plan', resolve('functions/bookings/topology.ts'), ...flags)
    expect([code, stdout.includes('\nKinesis ')]).toEqual([0, false])
    expect(stdout).toContain('\nKeyed stages read Kafka topics, so no Kinesis is counted')
    const keepsNothing = await project.result('plan', resolve('functions/enrichment/topology.ts'), ...flags)
    expect([keepsNothing.code, keepsNothing.stderr]).toEqual([
      2,
      expect.stringContaining('has no keyed stage, and so no topics of any: leave it out.'),
    ])
    const withoutCost = await project.result('plan', 'any.ts', '--keyed-topics')
    expect(withoutCost.stderr).toContain('--keyed-topics is for --cost: give that too.')
  },
  timeoutMs,
)

test(
  'a topology that cannot be had is one line and exit code 1',
  async () => {
    const imports = "import { text, Topology } from 'millrace'\n"
    await project.write('two.ts', `${imports}export const a = new Topology('a')\nexport const b = new Topology('b')\n`)
    // What it leaves behind does not keep the command from ending.
    await project.write('none.ts', 'setInterval(() => {}, 1_000)\nexport const answer = 42\n')
    await project.write('throws.ts', "throw new Error('no licence')\n")
    await project.write('cut.ts', 'export const = 1\n')
    await project.write(
      'loose.ts',
      `${imports}export const a = new Topology('a')\na.source('s', text()).map((t) => t)\n`,
    )
    // One topology under two names is one.
    await project.write(
      'same.ts',
      `${imports}export const a = new Topology('a')\na.source('s', text()).to(a.sink('k'))\nexport default a\n`,
    )
    const remedy = 'Export exactly one Topology.\n'
    expect(await lines('plan', 'two.ts')).toEqual([
      1,
      '',
      `millrace: two.ts exports several topologies: its exports are a, b. ${remedy}`,
    ])
    expect(await lines('plan', 'none.ts')).toEqual([
      1,
      '',
      `millrace: none.ts exports no Topology: its exports are answer. ${remedy}`,
    ])
    expect(await lines('plan', 'throws.ts')).toEqual([
      1,
      '',
      'millrace: throws.ts fails when it is loaded: no licence\n',
    ])
    expect(await lines('plan', 'cut.ts')).toEqual([1, '', 'millrace: cut.ts:1:14: Expected identifier but found "="\n'])
    expect(await lines('plan', 'loose.ts')).toEqual([
      1,
      '',
      expect.stringMatching(/^millrace: the results of source "s" > map in topology "a" go nowhere: .*\n$/),
    ])
    expect((await lines('plan', 'same.ts'))[0]).toBe(0)
  },
  timeoutMs,
)
