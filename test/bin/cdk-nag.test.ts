/** What AWS's rules for solutions say of every stack of this repository, and that they are asked at all. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { App, Stack, Validations } from 'aws-cdk-lib'
import { Vpc } from 'aws-cdk-lib/aws-ec2'
import { Stream, StreamEncryption } from 'aws-cdk-lib/aws-kinesis'
import { Key } from 'aws-cdk-lib/aws-kms'
import { Tracing } from 'aws-cdk-lib/aws-lambda'
import { Bucket, BucketEncryption } from 'aws-cdk-lib/aws-s3'
import { AwsSolutionsChecks } from 'cdk-nag'
import { addStacks } from '../../bin/stacks.ts'
import { DeadLetters } from '../../lib/cdk/index.ts'
import { ridesIn } from '../cdk/rides.ts'
import { findingsAfterSynth } from '../cdk/world.ts'

const { context } = JSON.parse(readFileSync(join(__dirname, '../../cdk.json'), 'utf8'))

/** What cdk-nag and the offline validator find in an app, warnings included. */
function findingsOf(build: (app: App) => void): string[] {
  const app = new App({ context: { ...context, 'aws:cdk:bundling-stacks': [] } })
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app))
  build(app)
  return findingsAfterSynth(app)
}

it('nothing is found in the stacks of bin/app.ts', () => {
  expect(findingsOf(addStacks)).toEqual([])
}, 240_000)

it('nothing is found in an application that is tuned: keys of its own, a VPC, traces, a bucket of another stack', () => {
  const findings = findingsOf((app) => {
    const shared = new Stack(app, 'Shared')
    const logs = new Bucket(shared, 'Logs', { enforceSSL: true, serverAccessLogsPrefix: 'own' })
    const letters = new Bucket(shared, 'Letters', {
      encryption: BucketEncryption.KMS,
      encryptionKey: new Key(shared, 'LettersKey', { enableKeyRotation: true }),
      enforceSSL: true,
      serverAccessLogsBucket: logs,
    })
    const vpc = new Vpc(shared, 'Vpc', { flowLogs: { All: {} }, natGateways: 0 })
    const stack = new Stack(app, 'Tuned')
    const encryptionKey = new Key(stack, 'StreamKey', { enableKeyRotation: true })
    const tuned = { vpc, vpcSubnets: { subnets: vpc.isolatedSubnets }, tracing: Tracing.ACTIVE }
    ridesIn(
      stack,
      {
        visits: { function: tuned },
        'by-city': {
          function: tuned,
          provisionedConcurrency: 1,
          stream: new Stream(stack, 'Own', { encryption: StreamEncryption.KMS, encryptionKey }),
        },
      },
      { deadLetters: DeadLetters.bucket(letters), announcer: { function: { tracing: Tracing.ACTIVE } } },
    )
  })
  // The application of the tests is in no lock file; and the user's own key is advised against, as it costs.
  const expected = /millrace\.lock\.json|does not use the "aws\/kinesis" key/
  expect(findings.filter((finding) => !expected.test(finding))).toEqual([])
}, 120_000)

it('something is found where there is something, and what the user grants is not covered by what we say of ours', () => {
  const findings = findingsOf((app) => {
    const stack = new Stack(app, 'Careless')
    new Bucket(stack, 'Open')
    const { function: target } = ridesIn(stack).stage('visits')
    new Bucket(stack, 'Granted', { enforceSSL: true }).grantReadWrite(target)
  })
  expect(findings.join('\n')).toMatch(/does not require requests to use SSL/)
  expect(findings.filter((finding) => finding.includes('wildcard permissions')).length).toBeGreaterThan(1)
}, 120_000)
