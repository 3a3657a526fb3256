/**
 * The Bookings stack as the deployment test varies it: `node test/deploy/app.ts VARIANT FOLDER` writes its assembly. `buggy` has other
 * code; `guarded` is for a MiniStack that enforces IAM, which differs from AWS in three things.
 */
import { readFileSync } from 'node:fs'
import { App, CliCredentialsStackSynthesizer } from 'aws-cdk-lib'
import { PolicyStatement } from 'aws-cdk-lib/aws-iam'
import { CfnBucketPolicy } from 'aws-cdk-lib/aws-s3'
import { CfnQueuePolicy } from 'aws-cdk-lib/aws-sqs'
import { BookingsStack } from '../../bin/demos/demo-stacks.ts'

const [variant, outdir = ''] = process.argv.slice(2)
const { context } = JSON.parse(readFileSync('cdk.json', 'utf8'))

function buggy(): App {
  const app = new App({ outdir, context })
  new BookingsStack(app, 'Bookings', { entry: 'test/deploy/bookings-with-bugs.ts' })
  return app
}

function guarded(): App {
  // The bootstrapped roles are not let publish there.
  const app = new App({ outdir, context, defaultStackSynthesizer: new CliCredentialsStackSynthesizer() })
  const stack = new BookingsStack(app, 'Bookings')
  // Queue and bucket refuse whoever comes without TLS, and there is none on loopback.
  const policies = stack.node.findAll().filter((one) => one instanceof CfnQueuePolicy || one instanceof CfnBucketPolicy)
  for (const { node } of policies) node.scope?.node.tryRemoveChild(node.id)
  // On AWS the action of a batch is that of a single message, and this one does not exist.
  const { deadLetters, stages } = stack.application
  if (deadLetters.kind !== 'sqs') throw new Error(`dead letters go to ${deadLetters.kind}`)
  const batches = new PolicyStatement({ actions: ['sqs:SendMessageBatch'], resources: [deadLetters.queue.queueArn] })
  for (const stage of stages) stage.function.addToRolePolicy(batches)
  return app
}

const app = variant === 'buggy' ? buggy() : guarded()
app.synth()
