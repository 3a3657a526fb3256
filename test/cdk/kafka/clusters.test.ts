/** Clusters of Kafka: how functions and Lambda's pollers reach them, and what they are granted there. */
import { App, CfnParameter, Fn, Stack } from 'aws-cdk-lib'
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions'
import { Key } from 'aws-cdk-lib/aws-kms'
import { CfnServerlessCluster } from 'aws-cdk-lib/aws-msk'
import { Secret } from 'aws-cdk-lib/aws-secretsmanager'
import { Construct } from 'constructs'
import {
  KafkaCluster,
  KafkaSink,
  KafkaSource,
  KinesisSource,
  type MskOptions,
  type SelfManagedOptions,
} from '../../../lib/cdk/index.ts'
import { bindingsOf, grantsOf, newStack, newStream, validated } from '../world.ts'
import { arns, clusterArn, linesIn, mappingOf, mskIn, networkIn, ofKafka } from './world.ts'

const lookup = 'Custom::MillraceKafkaBrokers'
const pollersInAVpc = [
  'ec2:CreateNetworkInterface "*"',
  'ec2:DeleteNetworkInterface "*"',
  'ec2:DescribeNetworkInterfaces "*"',
  'ec2:DescribeSecurityGroups "*"',
  'ec2:DescribeSubnets "*"',
  'ec2:DescribeVpcs "*"',
]
const userIn = (stack: Stack) => ({
  secret: new Secret(stack, 'User', { encryptionKey: new Key(stack, 'UserKey') }),
})

describe('MSK with IAM', () => {
  it('gives pollers by the role of the function, which needs no VPC and is told no brokers', () => {
    const stack = newStack()
    const application = linesIn(stack)
    expect(mappingOf(stack)).toMatchObject({ EventSourceArn: clusterArn, Topics: ['lines'] })
    expect(mappingOf(stack)).not.toHaveProperty('SourceAccessConfigurations')
    expect(ofKafka(grantsOf(stack, application, 'lines'))).toEqual([
      ...pollersInAVpc,
      `kafka-cluster:AlterGroup ${arns.group('*')}`,
      `kafka-cluster:Connect ${arns.cluster}`,
      `kafka-cluster:DescribeClusterDynamicConfiguration ${arns.cluster}`,
      `kafka-cluster:DescribeGroup ${arns.group('*')}`,
      `kafka-cluster:DescribeTopic ${arns.topic('lines')}`,
      `kafka-cluster:ReadData ${arns.topic('lines')}`,
      `kafka:DescribeClusterV2 ${arns.cluster}`,
      `kafka:GetBootstrapBrokers ${arns.cluster}`,
    ])
    expect(bindingsOf(stack, application, 'lines').sources).toEqual([
      { name: 'lines', kind: 'kafka', topic: 'lines', mode: 'on-demand', clusterArn },
    ])
    Template.fromStack(stack).resourceCountIs(lookup, 0)
  })

  it('lets a sink write to its topic, told of brokers that are looked up once', () => {
    const stack = newStack()
    const cluster = mskIn(stack)
    const application = linesIn(stack, {
      source: new KafkaSource(cluster, 'lines'),
      sink: new KafkaSink(cluster, 'out-lines'),
    })
    expect(grantsOf(stack, application, 'lines')).toEqual(
      expect.arrayContaining([
        `kafka-cluster:WriteData ${arns.topic('out-lines')}`,
        `kafka-cluster:DescribeTopic ${arns.topic('out-lines')}`,
        `kafka-cluster:WriteDataIdempotently ${arns.cluster}`,
      ]),
    )
    const [{ cluster: told }] = bindingsOf(stack, application, 'lines').sinks
    expect(told).toEqual({
      brokers: [expect.stringContaining('BootstrapBrokerStringSaslIam')],
      auth: { kind: 'iam', region: expect.stringContaining('AWS::Region') },
      tls: true,
    })
    const template = Template.fromStack(stack)
    template.resourceCountIs(lookup, 1)
    template.hasResourceProperties(lookup, { Delete: Match.absent() })
    template.hasResourceProperties('AWS::IAM::Policy', {
      PolicyDocument: {
        Statement: [{ Action: 'kafka:GetBootstrapBrokers', Effect: 'Allow', Resource: clusterArn }],
      },
    })
  })

  it('looks nothing up where brokers are given', () => {
    const stack = newStack()
    const cluster = mskIn(stack, { brokers: ['b-1.shop:9098', 'b-2.shop:9098'] })
    const application = linesIn(stack, { sink: new KafkaSink(cluster, 'out-lines') })
    expect(bindingsOf(stack, application, 'lines').sinks[0].cluster.brokers).toEqual(['b-1.shop:9098', 'b-2.shop:9098'])
    Template.fromStack(stack).resourceCountIs(lookup, 0)
  })

  it('names the group where one is given', () => {
    const stack = newStack()
    const source = new KafkaSource(mskIn(stack), 'lines', { consumerGroupId: 'lines-of-shop' })
    const grants = grantsOf(stack, linesIn(stack, { source }), 'lines')
    expect(grants).toContain(`kafka-cluster:AlterGroup ${arns.group('lines-of-shop')}`)
    expect(grants.join()).not.toContain(arns.group('*'))
    expect(mappingOf(stack).AmazonManagedKafkaEventSourceConfig).toEqual({ ConsumerGroupId: 'lines-of-shop' })
  })

  it('in another region is refused', () => {
    const stack = new Stack(new App({ context: validated }), 'Test', { env: { region: 'eu-west-1', account: '1' } })
    expect(() => linesIn(stack)).toThrow(/is in the region us-east-1, and the function .* in eu-west-1/)
  })

  const env = { region: 'us-east-1', account: '999999999999' }

  it('in another account is refused as a source', () => {
    const stack = new Stack(new App({ context: validated }), 'Test', { env })
    expect(() => linesIn(stack)).toThrow(
      /in the account 111122223333, and the function .* in 999999999999: a source reads/,
    )
  })

  it('in another account is shown with the policy that a sink needs there', () => {
    const stack = new Stack(new App({ context: validated }), 'Test', { env })
    const source = new KinesisSource(newStream(stack, 'In'))
    linesIn(stack, { source, sink: new KafkaSink(mskIn(stack), 'out-lines') })
    Annotations.fromStack(stack).hasWarning('*', Match.stringLikeRegexp('kafka-cluster:WriteData'))
  })
})

test('MSK Serverless that the stack makes is reached by IAM, under ARNs that only the deployment knows', () => {
  const stack = newStack()
  const serverless = new CfnServerlessCluster(stack, 'Serverless', {
    clusterName: 'shop',
    clientAuthentication: { sasl: { iam: { enabled: true } } },
    vpcConfigs: [{ subnetIds: ['subnet-1', 'subnet-2'] }],
  })
  const cluster = KafkaCluster.mskServerless(stack, 'Kafka', { clusterArn: serverless.attrArn })
  const application = linesIn(stack, { source: new KafkaSource(cluster, 'lines') })
  const { Statement } = Object.values(Template.fromStack(stack).findResources('AWS::IAM::Policy'))
    .flatMap(({ Properties }) => Properties.PolicyDocument)
    .find((document) => JSON.stringify(document).includes('kafka-cluster'))
  const reads = Statement.find(({ Action }: { Action: string[] }) => Action.includes('kafka-cluster:ReadData'))
  const made = { 'Fn::GetAtt': ['Serverless', 'Arn'] }
  const part = (index: number) => ({ 'Fn::Select': [index, { 'Fn::Split': [':cluster/', made] }] })
  expect(reads.Resource).toEqual({ 'Fn::Join': ['', [part(0), ':topic/', part(1), '/lines']] })
  expect(mappingOf(stack).EventSourceArn).toEqual(made)
  expect(application.stage('lines').function).toBeDefined()
})

test.each([{ auth: 'none' }, { tls: false }])('MSK Serverless with %j is refused', (options) => {
  expect(() => KafkaCluster.mskServerless(newStack(), 'Kafka', { clusterArn, ...options })).toThrow(
    /is of MSK Serverless, which knows IAM over TLS only: leave `auth` and `tls` out/,
  )
})

describe('MSK with a user of SASL/SCRAM', () => {
  it('gives pollers and functions the secret and its key, and names neither user nor password', () => {
    const stack = newStack()
    const cluster = mskIn(stack, { auth: userIn(stack) })
    const application = linesIn(stack, {
      source: new KafkaSource(cluster, 'lines'),
      sink: new KafkaSink(cluster, 'out-lines'),
    })
    expect(mappingOf(stack).SourceAccessConfigurations).toEqual([
      { Type: 'SASL_SCRAM_512_AUTH', URI: { Ref: expect.stringContaining('User') } },
    ])
    const grants = ofKafka(grantsOf(stack, application, 'lines'))
    expect(grants.join()).not.toContain('kafka-cluster:')
    expect(grants).toEqual(
      expect.arrayContaining([
        'kms:Decrypt UserKey',
        `kafka:ListScramSecrets ${arns.cluster}`,
        expect.stringMatching(/^secretsmanager:GetSecretValue .*User/),
        expect.stringMatching(/^secretsmanager:DescribeSecret .*User/),
      ]),
    )
    const [{ cluster: told }] = bindingsOf(stack, application, 'lines').sinks
    expect(told).toMatchObject({
      auth: { kind: 'scram', secretArn: expect.stringContaining('User') },
      brokers: [expect.stringContaining('SaslScram')],
    })
  })

  it('lets who only writes read the secret, and not describe it', () => {
    const stack = newStack()
    const cluster = mskIn(stack, { auth: userIn(stack) })
    const application = linesIn(stack, {
      source: new KafkaSource(
        KafkaCluster.selfManaged({ brokers: ['k:9092'], auth: 'none', network: networkIn(stack) }),
        'lines',
      ),
      sink: new KafkaSink(cluster, 'out-lines'),
    })
    const grants = grantsOf(stack, application, 'lines').filter((grant) => grant.startsWith('secretsmanager:'))
    expect(grants).toEqual([expect.stringContaining('GetSecretValue')])
  })
})

test.each<[MskOptions['tls'], string]>([
  [true, 'BootstrapBrokerStringTls'],
  [false, 'BootstrapBrokerString'],
])('MSK that takes anybody is granted nothing but its network, with tls %s', (tls, field) => {
  const stack = newStack()
  const cluster = mskIn(stack, { auth: 'none', ...(tls === undefined ? {} : { tls }) })
  const application = linesIn(stack, {
    source: new KafkaSource(cluster, 'lines'),
    sink: new KafkaSink(cluster, 'out-lines'),
  })
  expect(grantsOf(stack, application, 'lines').join()).not.toContain('kafka-cluster:')
  const [{ cluster: told }] = bindingsOf(stack, application, 'lines').sinks
  expect(told).toMatchObject({ auth: { kind: 'none' }, tls })
  expect(told.brokers[0]).toMatch(new RegExp(`'?${field}\\b`))
})

describe('a cluster of the user', () => {
  it('without a user is polled inside of its VPC, in plain text', () => {
    const stack = newStack()
    const network = networkIn(stack)
    const cluster = KafkaCluster.selfManaged({ brokers: ['kafka-1:9092', 'kafka-2:9092'], auth: 'none', network })
    const application = linesIn(stack, {
      source: new KafkaSource(cluster, 'lines'),
      sink: new KafkaSink(cluster, 'out-lines'),
    })
    const mapping = mappingOf(stack)
    expect(mapping).not.toHaveProperty('EventSourceArn')
    expect(mapping.SelfManagedEventSource).toEqual({
      Endpoints: { KafkaBootstrapServers: ['kafka-1:9092', 'kafka-2:9092'] },
    })
    expect(mapping.SourceAccessConfigurations).toEqual([
      { Type: 'VPC_SUBNET', URI: { Ref: expect.stringContaining('VpcPrivateSubnet1') } },
      { Type: 'VPC_SUBNET', URI: { Ref: expect.stringContaining('VpcPrivateSubnet2') } },
      {
        Type: 'VPC_SECURITY_GROUP',
        URI: { 'Fn::GetAtt': [expect.stringContaining('VpcClients'), 'GroupId'] },
      },
    ])
    expect(ofKafka(grantsOf(stack, application, 'lines'))).toEqual(pollersInAVpc)
    const bindings = bindingsOf(stack, application, 'lines')
    expect(bindings.sinks[0].cluster).toEqual({
      brokers: ['kafka-1:9092', 'kafka-2:9092'],
      auth: { kind: 'none' },
      tls: false,
    })
    expect(bindings.sources).toEqual([{ name: 'lines', kind: 'kafka', topic: 'lines', mode: 'on-demand' }])
  })

  it('with a user and an authority of its own tells functions the authority, and pollers where it is', () => {
    const stack = newStack()
    const authority = new Secret(stack, 'Authority')
    const cluster = KafkaCluster.selfManaged({
      brokers: ['kafka.example.com:9096'],
      auth: { ...userIn(stack), mechanism: 'SCRAM-SHA-256' },
      tls: { caPem: 'CERTIFICATE', secret: authority },
    })
    const application = linesIn(stack, {
      source: new KafkaSource(cluster, 'lines', { consumerGroupId: 'shop' }),
      sink: new KafkaSink(cluster, 'out-lines'),
    })
    expect(mappingOf(stack)).toMatchObject({
      SelfManagedKafkaEventSourceConfig: { ConsumerGroupId: 'shop' },
      SourceAccessConfigurations: [
        { Type: 'SASL_SCRAM_256_AUTH', URI: { Ref: expect.stringContaining('User') } },
        { Type: 'SERVER_ROOT_CA_CERTIFICATE', URI: { Ref: expect.stringContaining('Authority') } },
      ],
    })
    const [{ cluster: told }] = bindingsOf(stack, application, 'lines').sinks
    expect(told).toMatchObject({ auth: { mechanism: 'SCRAM-SHA-256' }, tls: { caPem: 'CERTIFICATE' } })
    const secrets = grantsOf(stack, application, 'lines').filter((grant) => grant.includes('GetSecretValue'))
    expect(new Set(secrets).size).toBe(2)
    expect(secrets.join()).toContain('Authority')
  })
})

it('with a user needs no network, and its pollers are granted none; who only writes is granted no authority', () => {
  const stack = newStack()
  const cluster = KafkaCluster.selfManaged({
    brokers: ['kafka.example.com:9096'],
    auth: userIn(stack),
    tls: { caPem: 'CERTIFICATE', secret: new Secret(stack, 'Authority') },
  })
  const reads = linesIn(stack, { source: new KafkaSource(cluster, 'lines') })
  const writes = linesIn(new Construct(stack, 'Writer'), {
    source: new KinesisSource(newStream(stack, 'In')),
    sink: new KafkaSink(cluster, 'out-lines'),
  })
  const ofReader = grantsOf(stack, reads, 'lines').join()
  expect(ofReader).toContain('Authority')
  expect(ofReader).not.toContain('ec2:')
  expect(grantsOf(stack, writes, 'lines').join()).not.toContain('Authority')
})

describe('brokers that only the deployment knows', () => {
  const listed: [string, (stack: Stack) => string[], unknown][] = [
    ['a parameter', (stack) => new CfnParameter(stack, 'P', { type: 'CommaDelimitedList' }).valueAsList, { Ref: 'P' }],
    [
      'a text that is split',
      () => Fn.split(',', Fn.importValue('brokers')),
      { 'Fn::Split': [',', { 'Fn::ImportValue': 'brokers' }] },
    ],
  ]

  it.each(listed)('may be %s: functions are told them in one text, and pollers in a list', (_, listIn, list) => {
    const stack = newStack()
    const cluster = KafkaCluster.selfManaged({ brokers: listIn(stack), auth: userIn(stack) })
    const application = linesIn(stack, {
      source: new KafkaSource(cluster, 'lines'),
      sink: new KafkaSink(cluster, 'out-lines'),
    })
    const joined = { 'Fn::Join': [',', list] }
    expect(mappingOf(stack).SelfManagedEventSource).toEqual({
      Endpoints: { KafkaBootstrapServers: { 'Fn::Split': [',', joined] } },
    })
    expect(bindingsOf(stack, application, 'lines').sinks[0].cluster.brokers).toEqual([
      JSON.stringify(joined).replaceAll('"', "'"),
    ])
    expect(cluster.identity).not.toContain('Token')
  })

  it('may be one text of several, or among others', () => {
    const stack = newStack()
    const brokers = ['kafka-1:9096', Fn.importValue('brokers')]
    linesIn(stack, { source: new KafkaSource(KafkaCluster.selfManaged({ brokers, auth: userIn(stack) }), 'lines') })
    expect(mappingOf(stack).SelfManagedEventSource.Endpoints.KafkaBootstrapServers).toEqual({
      'Fn::Split': [',', { 'Fn::Join': [',', ['kafka-1:9096', { 'Fn::ImportValue': 'brokers' }]] }],
    })
  })

  it('may be those of MSK', () => {
    const stack = newStack()
    const cluster = mskIn(stack, { brokers: Fn.split(',', Fn.importValue('brokers')) })
    const application = linesIn(stack, { sink: new KafkaSink(cluster, 'out-lines') })
    expect(bindingsOf(stack, application, 'lines').sinks[0].cluster.brokers).toEqual([
      expect.stringContaining('Fn::ImportValue'),
    ])
  })

  it('are refused as a list among others', () => {
    const brokers = ['kafka-1:9096', ...Fn.split(',', Fn.importValue('brokers'))]
    expect(() => KafkaCluster.selfManaged({ brokers, auth: 'none' })).toThrow(
      /has a list that only the deployment knows among its brokers: give that list alone, or its text/,
    )
  })
})

describe('a cluster is refused', () => {
  const user = { secret: Secret.fromSecretNameV2(newStack(), 'Given', 'user') }

  it.each<[string, Partial<MskOptions>, RegExp]>([
    [
      'an ARN of something else',
      { clusterArn: 'arn:aws:kafka:us-east-1:1:vpc-connection/1/shop/2' },
      /is none of a cluster/,
    ],
    ['mTLS', { auth: 'mtls' as never }, /has the auth "mtls": .*client certificates \(mTLS\).* are not offered/],
    ['SHA-256', { auth: { ...user, mechanism: 'SCRAM-SHA-256' } }, /which MSK does not have: leave `mechanism` out/],
    ['plain text with IAM', { tls: false }, /has `tls: false`, and MSK lets clients sign in over TLS only/],
    ['plain text with a user', { auth: user, tls: false }, /has `tls: false`/],
    ['no brokers', { brokers: [] }, /has no brokers: give one or more/],
    ['a broker without a port', { brokers: ['b-1.shop'] }, /has the broker "b-1.shop": .*"host:port"/],
  ])('of MSK: %s', (_, options, message) => {
    const stack = newStack()
    expect(() => linesIn(stack, { sink: new KafkaSink(mskIn(stack, options), 'out-lines') })).toThrow(message)
  })

  const brokers = ['kafka:9096']
  it.each<[string, SelfManagedOptions, RegExp]>([
    [
      'mTLS',
      { brokers, auth: { certificate: 'arn' } as never },
      /has the auth \["certificate"\]: give 'none' or a user/,
    ],
    ['IAM', { brokers, auth: 'iam' as never }, /has the auth "iam": give 'none' or/],
    ['a user in plain text', { brokers, auth: user, tls: false }, /pollers sign in over TLS only/],
    ['no brokers', { brokers: [], auth: 'none' }, /has no brokers/],
    [
      'neither a user nor a network',
      { brokers, auth: 'none' },
      /reach inside of a VPC only: give the cluster its `network`/,
    ],
    [
      'an authority that pollers cannot read',
      { brokers, auth: user, tls: { caPem: 'A' } },
      /give `tls: \{ caPem, secret \}`/,
    ],
  ])('of the user: %s', (_, options, message) => {
    expect(() => new KafkaSource(KafkaCluster.selfManaged(options), 'lines')).toThrow(message)
  })

  it('of the user, for pollers: a network without a security group', () => {
    const { vpc } = networkIn(newStack())
    const cluster = KafkaCluster.selfManaged({ brokers, auth: 'none', network: { vpc } })
    expect(() => new KafkaSource(cluster, 'lines')).toThrow(/without `securityGroups`, and Lambda's pollers need one/)
  })
})
