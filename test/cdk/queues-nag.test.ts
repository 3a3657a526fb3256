/** What AWS's rules for solutions say of an application on queues and tables. */
import { App, Duration, Stack, Validations } from 'aws-cdk-lib'
import { AttributeType, StreamViewType, TableV2 } from 'aws-cdk-lib/aws-dynamodb'
import { EventBus } from 'aws-cdk-lib/aws-events'
import { Queue } from 'aws-cdk-lib/aws-sqs'
import { AwsSolutionsChecks } from 'cdk-nag'
import { bind, DynamoDbStreamSource, EventBridgeSink, SqsSink, SqsSource } from '../../lib/cdk/index.ts'
import { findingsAfterSynth, shopIn, validated } from './world.ts'

it('nothing is found in an application on queues, a table of another stack, and a bus', () => {
  const app = new App({ context: validated })
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app))
  const table = new TableV2(new Stack(app, 'Shared'), 'Orders', {
    partitionKey: { name: 'id', type: AttributeType.STRING },
    dynamoStream: StreamViewType.NEW_AND_OLD_IMAGES,
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
  })
  const stack = new Stack(app, 'Test')
  const dead = { queue: new Queue(stack, 'Dead', { enforceSSL: true }), maxReceiveCount: 5 }
  const queue = (id: string) =>
    new Queue(stack, id, { enforceSSL: true, deadLetterQueue: dead, visibilityTimeout: Duration.minutes(7) })
  shopIn(stack, ({ orders, refunds, ledger, audit }) => ({
    bind: [
      bind(orders, new DynamoDbStreamSource(table)),
      bind(refunds, new SqsSource(queue('Refunds'))),
      bind(ledger, new SqsSink(queue('Ledger'))),
      bind(audit, new EventBridgeSink(new EventBus(stack, 'Audit'), { source: 'shop' })),
    ],
  }))
  expect(findingsAfterSynth(app)).toEqual([])
}, 60_000)
