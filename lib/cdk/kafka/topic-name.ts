/** Names of topics. */
import { Token } from 'aws-cdk-lib'
import { ConfigurationError } from '../../core/errors.ts'
import { valueIdentity } from '../resource-identity.ts'
import type { ClusterConnection } from './cluster.ts'

/** A name that Kafka takes for a topic; what only the deployment knows passes. Throws a {@link ConfigurationError} for any other. */
export function checkedTopic(topic: string, cluster: string): string {
  if (Token.isUnresolved(topic)) return topic
  // The types refuse what is no text; an environment variable that is not set, and plain JavaScript, do not.
  if (typeof topic === 'string' && /^[\w.-]{1,249}$/.test(topic) && topic !== '.' && topic !== '..') return topic
  throw new ConfigurationError(
    `the topic ${JSON.stringify(topic)} of the cluster ${cluster} has no name that Kafka takes: give 1 to 249 letters, digits, ".", "_" and "-".`,
  )
}

/** Tells two topics apart, and is free of tokens. */
export const topicIdentity = ({ identity }: ClusterConnection, topic: string): string =>
  `${identity}, topic ${valueIdentity(topic)}`
