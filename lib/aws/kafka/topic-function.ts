/**
 * The function that makes and checks the topics of keyed stages while a stack is deployed. The provider framework of the CDK invokes it
 * and answers CloudFormation, so that a network without a way to the internet will do.
 */
import type { CloudFormationCustomResourceEvent, Context } from 'aws-lambda'
import { describeError } from '../../core/errors.ts'
import { systemClock } from '../system-clock.ts'
import { openAdmin } from './kafka-admin.ts'
import { kafkaConnections } from './kafka-connections.ts'
import { answerDeployment, type TopicAnswer } from './topic-resource.ts'

/** What is left of the time of an invocation to say what is wrong. */
const marginMs = 5_000

/** The handler. What it rejects with is shown by CloudFormation, as one line without a stack. */
export async function handler(
  event: CloudFormationCustomResourceEvent,
  context: Pick<Context, 'getRemainingTimeInMillis'>,
): Promise<TopicAnswer> {
  const connectionTo = kafkaConnections(process.env)
  const signal = AbortSignal.timeout(Math.max(0, context.getRemainingTimeInMillis() - marginMs))
  const ports = {
    open: (cluster: Parameters<typeof connectionTo>[0]) => openAdmin(connectionTo(cluster)),
    clock: systemClock,
  }
  try {
    return await answerDeployment(event, ports, signal)
  } catch (thrown) {
    const { name, message } = describeError(thrown)
    throw Object.assign(new Error(message), { name, stack: `${name}: ${message}` })
  }
}
