/** Names of topics. */
import { Token } from 'aws-cdk-lib'
import { ConfigurationError } from '../../core/errors.ts'
import type { ClusterConnection } from './cluster.ts'

/** A name that Kafka takes for a topic; what only the deployment knows passes. Throws a {@link ConfigurationError} for any other. */
export function checkedTopic(topic: string, cluster: string): string {
  if (Token.isUnresolved(topic)) return topic
  if (/^[\w.-]{1,249}$/.test(topic) && topic !== '.' && topic !== '..') return topic
  throw new ConfigurationError(
    `the topic ${JSON.stringify(topic)} of the cluster ${cluster} has no name that Kafka takes: give 1 to 249 letters, digits, ".", "_" and "-".`,
  )
}

/** Tells two topics apart, and is free of tokens: those that only the deployment names pass for one. */
export const topicIdentity = ({ identity }: ClusterConnection, topic: string): string =>
  `${identity}, ${Token.isUnresolved(topic) ? 'a topic that the deployment names' : `topic ${topic}`}`
