/** The function of an application's announcer: what it is bound to, and one round in the time that an invocation has. */
import { ConfigurationError } from '../../core/errors.ts'
import type { Plan } from '../../plan/plan.ts'
import type { AnnouncedStage, AnnouncerBindings } from '../../plan/stage-bindings.ts'
import { announce } from '../../runtime/announcer/announcer.ts'
import type { AnnouncerPorts } from '../../runtime/announcer/knowledge.ts'
import { withinDeadline } from '../../runtime/invocation.ts'
import type { Logger } from '../../runtime/ports.ts'
import { createDynamoDBClient } from '../clients/dynamodb.ts'
import { createKinesisClient } from '../clients/kinesis.ts'
import { type Environment, endpointOf, parseBindings } from '../function-environment.ts'
import type { OpenKafka } from '../kafka/open-kafka.ts'
import { systemClock } from '../system-clock.ts'
import { announcerPorts } from './announcer-ports.ts'
import { lambdaLogger } from './observability.ts'
import { notBundled } from './open-sinks.ts'

/** What is left of an invocation when a round that is not done ends, in ms. */
const marginMs = 1_000

/**
 * Opens the ports of the announcer as its environment says. Rejects with a {@link ConfigurationError} where the function is bound for
 * a stage, or leaves one out.
 */
export async function openAnnouncerPorts(planned: Plan, environment: Environment): Promise<AnnouncerPorts> {
  const bindings = parseBindings(planned, environment)
  if (!('announces' in bindings)) {
    throw new ConfigurationError(
      `the function runs a stage of topology "${planned.topology}" and does not announce: only the rule of its StreamApplication is to invoke the announcer.`,
    )
  }
  const logger = lambdaLogger({ application: planned.topology, stage: 'announcer' })
  const clients = {
    kinesis: createKinesisClient(endpointOf('KINESIS', environment)),
    dynamodb: createDynamoDBClient(endpointOf('DYNAMODB', environment)),
    logger,
    ...(bindings.announces.some((stage) => 'topic' in stage) && { kafka: await openKafka(environment, logger) }),
  }
  return announcerPorts(planned, clients, {
    streamOf: (stage) => announced(planned, bindings, stage),
    tableOf: (stage) => announced(planned, bindings, stage).state.tableName,
  })
}

async function openKafka(environment: Environment, logger: Logger): Promise<OpenKafka> {
  if (process.env.MILLRACE_ADAPTER_ANNOUNCER_KAFKA === 'false') notBundled('announcing on Kafka')
  else {
    const { OpenKafka } = await import('../kafka/open-kafka.ts')
    return new OpenKafka(environment, { clock: systemClock, logger })
  }
}

function announced({ topology }: Plan, { announces }: AnnouncerBindings, name: string): AnnouncedStage {
  const found = announces.find(({ stage }) => stage === name)
  if (found) return found
  throw new ConfigurationError(
    `the announcer of topology "${topology}" is not told of stage "${name}": deploy handler and stack together.`,
  )
}

/** One round before the deadline; rejects with what it could not read or say. The next round begins anew. */
export async function announceWithin(planned: Plan, ports: AnnouncerPorts, remainingMs: number): Promise<void> {
  const deadlineMs = ports.clock.nowMs() + remainingMs
  await withinDeadline(ports.clock, deadlineMs, marginMs, ({ signal }) => announce({ planned, ports, signal }))
}
