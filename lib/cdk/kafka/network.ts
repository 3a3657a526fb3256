/** Where a function stands that speaks to the brokers of a cluster. */
import { ConfigurationError } from '../../core/errors.ts'
import { valueIdentity } from '../resource-identity.ts'
import type { FunctionOverrides } from '../stage-settings.ts'
import type { ClusterConnection } from './cluster.ts'

/** A cluster that the function does not reach, because it has none or needs none there, is undefined. */
export type ReachedClusters = readonly (ClusterConnection | undefined)[]

/**
 * The options of a function, with the network of the clusters that it reaches where the user says no VPC; the user's own wins.
 * Throws a {@link ConfigurationError} where clusters are in several VPCs, since a function stands in one.
 */
export function placedFor(whose: string, clusters: ReachedClusters, given: FunctionOverrides): FunctionOverrides {
  const reached = new Map(clusters.flatMap((cluster) => (cluster?.network ? [[cluster.identity, cluster]] : [])))
  const networks = [...reached.values()].flatMap(({ network }) => network ?? [])
  const [first, ...others] = networks
  if (first === undefined || given.vpc !== undefined) return given
  if (others.some(({ vpc }) => valueIdentity(vpc.vpcId) !== valueIdentity(first.vpc.vpcId))) {
    throw new ConfigurationError(
      `${whose} reaches the clusters ${[...reached.keys()].join(' and ')}, which are in several VPCs, and a function stands in one: give it a VPC from which all of them are reached, as \`function: { vpc }\` in its settings.`,
    )
  }
  const groups = networks.flatMap((network) => network.securityGroups ?? [])
  const securityGroups = [...new Map(groups.map((group) => [valueIdentity(group.securityGroupId), group])).values()]
  return {
    vpc: first.vpc,
    ...(first.vpcSubnets ? { vpcSubnets: first.vpcSubnets } : {}),
    ...(securityGroups.length > 0 ? { securityGroups } : {}),
    ...given,
  }
}
