/**
 * Asks a cluster while a stack is deployed. What stands in the way then often passes: the network of a function, and what its role may
 * do, take effect a while after they are made.
 */
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError } from '../../core/errors.ts'
import type { TopicRequest } from '../../plan/topic-request.ts'
import { KafkaFailure, kafkaFailureOf } from './kafka-failure.ts'

const betweenMs = 1_000
/** For so long a role may still be taking effect. */
const settlesWithinMs = 60_000
const settling = /AUTHORIZATION_FAILED$|AUTHENTICATION_FAILED$/

/** What to do about what a cluster said, by its name. */
const remedies: Readonly<Record<string, string>> = {
  INVALID_REPLICATION_FACTOR:
    'the cluster has fewer brokers than `replicationFactor` says: say fewer, or leave it out.',
  INVALID_PARTITIONS: 'the cluster takes no topic of so many: say fewer `partitions`.',
  INVALID_CONFIG: 'the cluster does not take one of the settings of the topic: see `settings`.',
  POLICY_VIOLATION: 'the cluster has a rule against such topics: have one made by who may, and say its `name`.',
  SASL_AUTHENTICATION_FAILED: 'check the secret of the cluster, or the role of the function.',
}

function remedyFor({ name, passes }: KafkaFailure): string {
  if (passes)
    return "check that the brokers are right, and that the cluster's security group lets the function of the topics in."
  if (name.endsWith('AUTHORIZATION_FAILED'))
    return 'check that the user or the role of the function of the topics may make, describe and change topics of this name.'
  return remedies[name] ?? 'mend that, and deploy again.'
}

/** Asks until there is an answer, a refusal that will not pass, or no time left; rejects with a {@link ConfigurationError} then. */
export async function patiently<T>(
  { stage, cluster }: TopicRequest,
  clock: Clock,
  signal: AbortSignal,
  ask: () => Promise<T>,
): Promise<T> {
  const sinceMs = clock.nowMs()
  let last = new KafkaFailure('DEADLINE', 'no broker answered in time', { passes: true })
  while (!signal.aborted) {
    try {
      return await unlessAborted(ask(), signal)
    } catch (thrown) {
      if (signal.aborted) break
      last = kafkaFailureOf(thrown)
      const settles = settling.test(last.name) && clock.nowMs() - sinceMs < settlesWithinMs
      if (!last.passes && !settles) break
    }
    await clock.sleep(betweenMs, signal)
  }
  throw new ConfigurationError(
    `the topic of stage "${stage}" could not be made or looked at, at ${cluster.brokers.join(', ')} (${last.name}: ${last.message}): ${remedyFor(last)}`,
    { code: 'topic-unreachable' },
  )
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', onAbort))
}
