/** Where clients of a cluster of MSK begin, looked up when a stack is deployed. */
import { Stack } from 'aws-cdk-lib'
import { PolicyStatement } from 'aws-cdk-lib/aws-iam'
import { AwsCustomResource, AwsCustomResourcePolicy, PhysicalResourceId } from 'aws-cdk-lib/custom-resources'
import { Construct } from 'constructs'
import type { KafkaCluster } from '../../plan/stage-bindings.ts'
import { acknowledge } from '../acknowledge.ts'

export interface BootstrapBrokersProps {
  readonly clusterArn: string
  readonly auth: KafkaCluster['auth']['kind']
  readonly tls: boolean
}

/** The field of the answer, by how clients sign in. */
const fieldOf = ({ auth, tls }: BootstrapBrokersProps): string => {
  if (auth === 'iam') return 'BootstrapBrokerStringSaslIam'
  if (auth === 'scram') return 'BootstrapBrokerStringSaslScram'
  return tls ? 'BootstrapBrokerStringTls' : 'BootstrapBrokerString'
}

/**
 * Asks MSK for the brokers when the stack is first deployed, and again when the cluster or the way to sign in is another. Brokers that
 * are added later need no asking: a client learns of them from any that it knows.
 *
 * @see https://docs.aws.amazon.com/msk/1.0/apireference/clusters-clusterarn-bootstrap-brokers.html
 */
export class BootstrapBrokers extends Construct {
  /** All of them in one text, with commas between. */
  readonly text: string

  constructor(scope: Construct, id: string, props: BootstrapBrokersProps) {
    super(scope, id)
    const { clusterArn } = props
    const field = fieldOf(props)
    const lookup = new AwsCustomResource(this, 'Brokers', {
      resourceType: 'Custom::MillraceKafkaBrokers',
      onUpdate: {
        service: 'kafka',
        action: 'GetBootstrapBrokers',
        parameters: { ClusterArn: clusterArn },
        physicalResourceId: PhysicalResourceId.of(`${field}-brokers`),
        outputPaths: [field],
      },
      installLatestAwsSdk: false,
      policy: AwsCustomResourcePolicy.fromStatements([
        new PolicyStatement({ actions: ['kafka:GetBootstrapBrokers'], resources: [clusterArn] }),
      ]),
    })
    this.text = lookup.getResponseField(field)
    acknowledgeProvider(this)
  }
}

/** The CDK's own function for such calls, of which a stack has one. */
function acknowledgeProvider(scope: Construct): void {
  const provider = Stack.of(scope).node.children.find(({ node }) => node.id === 'AWS679f53fac002430cb0da5b7982bd2287')
  if (!provider) return
  const why =
    'It is the function of the CDK that makes calls of AWS for a deployment; the CDK chooses its policy and runtime.'
  acknowledge(provider, 'AwsSolutions-L1', why)
  const policy = 'arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole'
  acknowledge(provider, `AwsSolutions-IAM4[Policy::${policy}]`, why)
}
