import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findingsIn } from '../cdk/world.ts'

const root = join(__dirname, '../..')
const { context } = JSON.parse(readFileSync(join(root, 'cdk.json'), 'utf8'))

describe('the CDK app', () => {
  const outdir = mkdtempSync(join(tmpdir(), 'millrace-app-'))
  afterAll(() => rmSync(outdir, { recursive: true }))

  /** Runs `bin/app.ts` as the CDK does, without bundling. */
  const synthesise = () => {
    const env = {
      PATH: process.env.PATH,
      CDK_OUTDIR: outdir,
      CDK_CONTEXT_JSON: JSON.stringify({ ...context, 'aws:cdk:bundling-stacks': [] }),
    }
    execFileSync(process.execPath, ['bin/app.ts'], { cwd: root, env, stdio: 'pipe' })
    return JSON.parse(readFileSync(join(outdir, 'Flights.template.json'), 'utf8')).Resources
  }

  it('synthesises the flights application, with neither credentials nor Docker', () => {
    expect(context['@aws-cdk/core:validateAgainstDefaultRules']).toBe(true)
    const resources = Object.values<{ Type: string }>(synthesise())
    const count = (type: string) => resources.filter((resource) => resource.Type === type).length
    // The source, four sinks and what the keyed stage reads; the two stages and the announcer.
    expect(count('AWS::Kinesis::Stream')).toBe(6)
    expect(count('AWS::Lambda::Function')).toBe(3)
    expect(count('AWS::Lambda::EventSourceMapping')).toBe(2)
    expect(count('AWS::SQS::Queue')).toBe(1)
    expect(findingsIn(outdir)).toEqual([])
  }, 60_000)

  it('says in one line what is wrong, and fails', () => {
    const run = spawnSync(process.execPath, [join(root, 'bin/app.ts')], { cwd: outdir, encoding: 'utf8' })
    expect(run.stderr).toMatch(
      /^there is no handler file .*: "entry" is relative to the folder in which the CDK app runs.\n$/,
    )
    expect(run.status).toBe(1)
  })
})
