import { Duration, RemovalPolicy } from 'aws-cdk-lib'
import { Match, Template } from 'aws-cdk-lib/assertions'
import { IpAddresses, Vpc } from 'aws-cdk-lib/aws-ec2'
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import { type CfnFunction, LayerVersion } from 'aws-cdk-lib/aws-lambda'
import { RetentionDays } from 'aws-cdk-lib/aws-logs'
import { ridesIn } from './rides.ts'
import { bindingsOf, grantsOf, newStack } from './world.ts'

const layer = 'arn:aws:lambda:eu-west-1:111122223333:layer:tools:3'

describe('a stage with all that can be tuned', () => {
  const stack = newStack()
  const vpc = new Vpc(stack, 'Vpc', { ipAddresses: IpAddresses.cidr('10.0.0.0/16'), natGateways: 0 })
  const application = ridesIn(stack, {
    'by-city': {
      memorySize: 2_048,
      timeout: Duration.minutes(3),
      batchSize: 2_000,
      maxBatchingWindow: Duration.seconds(5),
      environment: { LEVEL: 'debug' },
      logRetention: RetentionDays.ONE_YEAR,
      provisionedConcurrency: 3,
      stream: { warmThroughputMiBps: 100, retentionPeriod: Duration.days(14) },
      table: { warmThroughput: { readUnitsPerSecond: 20_000, writeUnitsPerSecond: 10_000 } },
      function: {
        vpc,
        vpcSubnets: { subnets: vpc.isolatedSubnets },
        reservedConcurrentExecutions: 20,
        layers: [LayerVersion.fromLayerVersionArn(stack, 'Tools', layer)],
      },
    },
  })
  const { function: target, alias, mapping, stream, table, logGroup } = application.stage('by-city')
  application.stage('rides').table.grantReadData(target)
  alias?.addToRolePolicy(new PolicyStatement({ actions: ['ses:SendEmail'], resources: ['arn:aws:ses:::identity/x'] }))
  const template = Template.fromStack(stack)
  const resource = (construct: { readonly node: { readonly defaultChild?: unknown } }) =>
    template.toJSON().Resources[stack.getLogicalId(construct.node.defaultChild as CfnFunction)].Properties

  it('has a function that is as said', () => {
    expect(resource(target)).toMatchObject({
      MemorySize: 2_048,
      Timeout: 180,
      ReservedConcurrentExecutions: 20,
      Layers: [layer],
      VpcConfig: { SubnetIds: [expect.anything(), expect.anything()] },
      Environment: { Variables: { LEVEL: 'debug', MILLRACE_BINDINGS: expect.anything() } },
    })
    expect(resource(logGroup)).toMatchObject({ RetentionInDays: 365 })
  })

  it('has a mapping to the alias of the version that is kept ready', () => {
    expect(resource(mapping)).toMatchObject({
      BatchSize: 2_000,
      MaximumBatchingWindowInSeconds: 5,
      FunctionName: stack.resolve(alias?.functionName),
    })
    template.hasResourceProperties('AWS::Lambda::Alias', {
      Name: 'live',
      FunctionName: stack.resolve(target.functionName),
      FunctionVersion: { 'Fn::GetAtt': [Match.stringLikeRegexp('^RidesbycityFunctionCurrentVersion'), 'Version'] },
      ProvisionedConcurrencyConfig: { ProvisionedConcurrentExecutions: 3 },
    })
    // The others are invoked as they are.
    template.resourceCountIs('AWS::Lambda::Alias', 1)
    expect(application.stage('rides').alias).toBeUndefined()
  })

  it('has a stream and a table that are warm, and the function is told how long the stream keeps records', () => {
    expect(resource(stream)).toMatchObject({ WarmThroughputMiBps: 100, RetentionPeriodHours: 336 })
    expect(resource(table)).toMatchObject({
      WarmThroughput: { ReadUnitsPerSecond: 20_000, WriteUnitsPerSecond: 10_000 },
    })
    expect(bindingsOf(stack, application, 'by-city')).toMatchObject({ retentionMs: 14 * 86_400_000 })
  })

  it('may make the network interfaces that a VPC needs, by a statement of its own, and uses no policy of AWS', () => {
    template.allResourcesProperties('AWS::IAM::Role', { ManagedPolicyArns: Match.absent() })
    template.hasResourceProperties('AWS::IAM::Role', {
      Policies: [
        {
          PolicyName: 'network',
          PolicyDocument: {
            Statement: [Match.objectLike({ Action: Match.arrayWith(['ec2:CreateNetworkInterface']) })],
          },
        },
      ],
    })
  })

  it('has one role, to which what is granted to its function and to its alias goes', () => {
    const grants = grantsOf(stack, application, 'by-city')
    expect(grants).toContain('dynamodb:Scan RidesridesTable')
    expect(grants.join()).toContain('ses:SendEmail')
  })
})

it('a role of one’s own is used, and gets what the stage needs', () => {
  const stack = newStack()
  const role = new Role(stack, 'Own', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') })
  const application = ridesIn(stack, { visits: { function: { role } } })
  expect(application.stage('visits').function.role).toBe(role)
  const grants = grantsOf(stack, application, 'visits')
  expect(grants).toEqual(expect.arrayContaining(['kinesis:GetRecords Visits', 'logs:PutLogEvents RidesvisitsLogs']))
})

it('every stage has a role of its own', () => {
  const stack = newStack()
  const application = ridesIn(stack)
  const roles = application.stages.map(({ function: target }) => target.role?.node.path)
  expect(new Set(roles).size).toBe(4)
})

it('streams and tables stay when they are removed from the stack, unless asked otherwise', () => {
  const stack = newStack()
  ridesIn(stack, { 'by-driver': { table: { removalPolicy: RemovalPolicy.DESTROY } } })
  const kept = Object.entries<{ DeletionPolicy?: string; UpdateReplacePolicy?: string }>(
    Template.fromStack(stack).findResources('AWS::DynamoDB::GlobalTable'),
  ).map(
    ([id, { DeletionPolicy, UpdateReplacePolicy }]) => `${id.slice(0, -8)} ${DeletionPolicy} ${UpdateReplacePolicy}`,
  )
  expect(kept.sort()).toEqual([
    'RidesbycityTable Retain Retain',
    'RidesbydriverTable Delete Delete',
    'RidesridesTable Retain Retain',
  ])
})

describe('refused with the limit', () => {
  it.each<[string, Parameters<typeof ridesIn>[1], string]>([
    [
      'no environment kept ready',
      { rides: { provisionedConcurrency: 0 } },
      'stage "rides" has provisionedConcurrency 0: give a whole number from 1',
    ],
    [
      'more kept ready than reserved',
      { rides: { provisionedConcurrency: 5, function: { reservedConcurrentExecutions: 4 } } },
      'has provisionedConcurrency 5 and reservedConcurrentExecutions 4',
    ],
    [
      'a number of shards that are warmed',
      { 'by-city': { stream: { shardCount: 2, warmThroughputMiBps: 10 } } },
      'the stream of stage "by-city" has both shardCount and warmThroughputMiBps',
    ],
  ])('%s', (_, stages, message) => {
    expect(() => ridesIn(newStack(), stages)).toThrow(message)
  })
})
