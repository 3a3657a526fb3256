/** A demo application on Kafka alone: topics in, between the stages and out, on a cluster of MSK Serverless that the stack makes. */
import { Stack, type StackProps } from 'aws-cdk-lib'
import { GatewayVpcEndpointAwsService, Port, SecurityGroup, SubnetType, Vpc } from 'aws-cdk-lib/aws-ec2'
import { CfnServerlessCluster } from 'aws-cdk-lib/aws-msk'
import type { Construct } from 'constructs'
import { driverEvents, driverStatus, driversApp } from '../../functions/drivers/topology.ts'
import {
  bind,
  type ClusterConnection,
  DeadLetters,
  KafkaCluster,
  KafkaSink,
  KafkaSource,
  KeyedStreams,
  StreamApplication,
} from '../../lib/cdk/index.ts'

/** The port of MSK where clients sign in by IAM. */
const brokerPort = Port.tcp(9098)

/**
 * The drivers on Kafka. The topics `driver-events`, `driver-status` and `drivers-failed` are yours to make, once the cluster is there;
 * that of the keyed stage is made. All pollers share one group, so that one event poller unit is paid for. The cluster costs whether
 * anything comes or not: delete the stack when you have seen it.
 */
export class DriversOnKafkaStack extends Stack {
  readonly application: StreamApplication

  constructor(scope: Construct, id: string, props?: StackProps) {
    super(scope, id, props)
    const cluster = clusterIn(this)
    const pollers = { minimum: 1, maximum: 4, group: 'drivers' }
    this.application = new StreamApplication(this, 'Drivers', {
      topology: driversApp,
      entry: 'functions/drivers/handler.ts',
      bind: [
        bind(driverEvents, new KafkaSource(cluster, 'driver-events', { pollers })),
        bind(driverStatus, new KafkaSink(cluster, 'driver-status')),
      ],
      deadLetters: DeadLetters.topic(cluster, 'drivers-failed'),
      keyedStreams: KeyedStreams.topics(cluster, { pollers }),
    })
  }
}

/**
 * A cluster in a VPC without a way out. Functions there reach DynamoDB and S3 through endpoints that cost nothing; provisioned pollers
 * need none, while those on demand would need endpoints of Lambda and STS, or a NAT.
 */
function clusterIn(scope: Construct): ClusterConnection {
  const vpc = new Vpc(scope, 'Vpc', {
    maxAzs: 2,
    natGateways: 0,
    subnetConfiguration: [{ name: 'kafka', subnetType: SubnetType.PRIVATE_ISOLATED }],
    gatewayEndpoints: {
      DynamoDb: { service: GatewayVpcEndpointAwsService.DYNAMODB },
      S3: { service: GatewayVpcEndpointAwsService.S3 },
    },
    flowLogs: { All: {} },
  })
  const clients = new SecurityGroup(scope, 'Clients', { vpc, description: 'Functions that speak to the brokers' })
  const brokers = new SecurityGroup(scope, 'Brokers', { vpc, description: 'The brokers, and the pollers of Lambda' })
  brokers.addIngressRule(clients, brokerPort, 'Functions')
  // Lambda puts its pollers into the security group of the cluster.
  brokers.addIngressRule(brokers, brokerPort, 'Pollers')
  const serverless = new CfnServerlessCluster(scope, 'Cluster', {
    clusterName: 'drivers',
    clientAuthentication: { sasl: { iam: { enabled: true } } },
    vpcConfigs: [
      { subnetIds: vpc.isolatedSubnets.map(({ subnetId }) => subnetId), securityGroups: [brokers.securityGroupId] },
    ],
  })
  return KafkaCluster.mskServerless(scope, 'Kafka', {
    clusterArn: serverless.attrArn,
    network: { vpc, vpcSubnets: { subnets: vpc.isolatedSubnets }, securityGroups: [clients] },
  })
}
