import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(__dirname, '../..')
const flag = '@aws-cdk/core:validateAgainstDefaultRules'
const { context } = JSON.parse(readFileSync(join(root, 'cdk.json'), 'utf8'))

// Each test starts a CDK app.
jest.setTimeout(120_000)

describe('the offline validator of the CDK', () => {
  const outdir = mkdtempSync(join(tmpdir(), 'millrace-unsound-'))
  afterAll(() => rmSync(outdir, { recursive: true }))

  /** Runs an app whose template has a property that does not exist, as the CDK runs one. */
  const run = (settings: object) => {
    const env = { PATH: process.env.PATH, CDK_OUTDIR: outdir, CDK_CONTEXT_JSON: JSON.stringify(settings) }
    return spawnSync(process.execPath, ['test/cdk/fixtures/unsound-app.ts'], { cwd: root, env, encoding: 'utf8' })
  }

  it('fails a synth with a template that CloudFormation would not take, by the settings of cdk.json', () => {
    const { status, stderr } = run(context)
    expect(status).toBe(1)
    expect(stderr).toContain("'DelaySecond' was unexpected")
  })

  it('would only warn without the flag', () => {
    const { status, stderr } = run({ ...context, [flag]: false })
    expect(status).toBe(0)
    expect(stderr).toContain("'DelaySecond' was unexpected")
  })
})
