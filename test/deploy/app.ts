/**
 * The stacks of the deployment tests, made at once, so that equal code is bundled once: `node test/deploy/app.ts FOLDER`.
 *
 *     id         stack      in FOLDER/present, by this release
 *     Flights    Flights    as users deploy it
 *     Bookings   Bookings   as users deploy it
 *     Buggy      Bookings   with other code
 *     Guarded    Bookings   for a MiniStack that enforces IAM, which differs from AWS in three things
 *     Mixed      Upgraded   in the middle of an upgrade: the keyed stage has the code of the release before
 *     Upgraded   Upgraded   after it, with records that only this release can read
 *
 * and in FOLDER/former, by the release before: Upgraded.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { App, CliCredentialsStackSynthesizer, type Stack } from 'aws-cdk-lib'
import { PolicyStatement } from 'aws-cdk-lib/aws-iam'
import { CfnBucketPolicy } from 'aws-cdk-lib/aws-s3'
import { CfnQueuePolicy } from 'aws-cdk-lib/aws-sqs'
import { BookingsStack } from '../../bin/demos/demo-stacks.ts'
import { FlightsStack } from '../../bin/flights/flights-stack.ts'
import { formerHandler, unpackFormerRelease } from './former-release.ts'

const [folder = ''] = process.argv.slice(2)
const { context } = JSON.parse(readFileSync('cdk.json', 'utf8'))

function addPresent(app: App, formerCode: string): void {
  const stackName = 'Upgraded'
  const entry = 'test/deploy/bookings-of-now.ts'
  new FlightsStack(app, 'Flights')
  new BookingsStack(app, 'Bookings')
  new BookingsStack(app, 'Buggy', { stackName: 'Bookings', entry: 'test/deploy/bookings-with-bugs.ts' })
  new BookingsStack(app, 'Mixed', { stackName, entry, stages: { 'by-hotel': { entry: formerCode } } })
  new BookingsStack(app, 'Upgraded', { stackName, entry })
  addGuarded(app)
}

function addGuarded(app: App): void {
  // The bootstrapped roles are not let publish there.
  const synthesizer = new CliCredentialsStackSynthesizer()
  const stack = new BookingsStack(app, 'Guarded', { stackName: 'Bookings', synthesizer })
  // Queue and bucket refuse whoever comes without TLS, and there is none on loopback.
  const policies = stack.node.findAll().filter((one) => one instanceof CfnQueuePolicy || one instanceof CfnBucketPolicy)
  for (const { node } of policies) node.scope?.node.tryRemoveChild(node.id)
  // On AWS the action of a batch is that of a single message, and this one does not exist.
  const { deadLetters, stages } = stack.application
  if (deadLetters.kind !== 'sqs') throw new Error(`dead letters go to ${deadLetters.kind}`)
  const batches = new PolicyStatement({ actions: ['sqs:SendMessageBatch'], resources: [deadLetters.queue.queueArn] })
  for (const stage of stages) stage.function.addToRolePolicy(batches)
}

interface FormerStacks {
  readonly BookingsStack: new (scope: App, id: string) => Stack
}

mkdirSync('.millrace', { recursive: true })
const former = resolve(mkdtempSync('.millrace/former-'))
try {
  const present = new App({ outdir: resolve(folder, 'present'), context })
  const formerStacks = unpackFormerRelease(former)
  addPresent(present, join(former, formerHandler))
  present.synth()
  const { BookingsStack: FormerBookings }: FormerStacks = await import(formerStacks)
  const before = new App({ outdir: resolve(folder, 'former'), context })
  process.chdir(former)
  new FormerBookings(before, 'Upgraded')
  before.synth()
} finally {
  rmSync(former, { recursive: true, force: true })
}
