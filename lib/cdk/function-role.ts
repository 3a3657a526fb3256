/** The role of a function that we make: it may do nothing until that is granted, not even write logs. */
import { PolicyDocument, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import { Tracing } from 'aws-cdk-lib/aws-lambda'
import type { NodejsFunction, NodejsFunctionProps } from 'aws-cdk-lib/aws-lambda-nodejs'
import type { Construct } from 'constructs'
import { acknowledgeWildcard } from './acknowledge.ts'

/**
 * What Lambda does to put a function into a VPC. EC2 takes no resource for most of it.
 * @see https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
 */
const networkActions = [
  'ec2:AssignPrivateIpAddresses',
  'ec2:CreateNetworkInterface',
  'ec2:DeleteNetworkInterface',
  'ec2:DescribeNetworkInterfaces',
  'ec2:DescribeSubnets',
  'ec2:UnassignPrivateIpAddresses',
]

/** The role of a function with these options: the user's own, or one without any policy of AWS, which are wider. */
export function roleFor(scope: Construct, { role, vpc }: Pick<NodejsFunctionProps, 'role' | 'vpc'>) {
  if (role) return role
  const assumedBy = new ServicePrincipal('lambda.amazonaws.com')
  if (!vpc) return new Role(scope, 'Role', { assumedBy })
  const network = new PolicyDocument({
    statements: [new PolicyStatement({ actions: networkActions, resources: ['*'] })],
  })
  const own = new Role(scope, 'Role', { assumedBy, inlinePolicies: { network } })
  acknowledgeWildcard(
    own.node.defaultChild as Construct,
    '*',
    'EC2 takes no resource for the calls by which Lambda puts a function into a VPC.',
  )
  return own
}

/** Traces have no resource to be granted on; the CDK grants them where the user switches tracing on. */
export function acknowledgeTracing(target: NodejsFunction, { tracing }: Pick<NodejsFunctionProps, 'tracing'>): void {
  if (tracing === undefined || tracing === Tracing.DISABLED) return
  acknowledgeWildcard(target.role ?? target, '*', 'X-Ray takes no resource for the calls by which traces are sent.')
}
