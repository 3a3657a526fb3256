/** The topics of an application's keyed stages, and the function that makes and checks them. */
import { Duration, Stack } from 'aws-cdk-lib'
import { Architecture, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda'
import { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs'
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs'
import { Provider } from 'aws-cdk-lib/custom-resources'
import { Construct } from 'constructs'
import type { KeyedStage } from '../../plan/plan.ts'
import { acknowledgeWildcard, flattened } from '../acknowledge.ts'
import { locateTopicFunction, topicFunctionBundling } from '../bundle.ts'
import { acknowledgeTracing, roleFor } from '../function-role.ts'
import type { KeyedStreams } from './keyed-streams.ts'
import { KeyedTopic } from './keyed-topic.ts'
import { placedFor } from './network.ts'
import { type StageTopicProps, topicSettingsOf } from './stage-topic.ts'

/** Longer than a network interface and a role take to come into effect. */
const timeout = Duration.minutes(5)

export interface KeyedTopicsParts {
  readonly topology: string
  /** The application's entry: Millrace's own code is that of the package which it imports. */
  readonly entry: string
  readonly streams: KeyedStreams
}

/**
 * The topics of an application. CloudFormation is answered by a function of the CDK's provider framework, which stands in no VPC: ours,
 * which must reach the brokers, needs no way to the internet for it.
 */
export class KeyedTopics extends Construct {
  /** Makes and checks topics while the stack is deployed. */
  readonly function: NodejsFunction
  readonly logGroup: LogGroup
  readonly #parts: KeyedTopicsParts
  readonly #serviceToken: string

  constructor(scope: Construct, parts: KeyedTopicsParts) {
    super(scope, 'Topics')
    this.#parts = parts
    const { topology, entry, streams } = parts
    const code = locateTopicFunction(entry)
    const given = placedFor('the function of the topics', [streams.cluster], streams.props.function ?? {})
    this.logGroup = new LogGroup(this, 'Logs', { retention: RetentionDays.ONE_MONTH })
    this.function = new NodejsFunction(this, 'Function', {
      description: `Makes and checks the topics of the topology "${topology}"`,
      architecture: Architecture.ARM_64,
      memorySize: 256,
      timeout,
      tracing: Tracing.DISABLED,
      ...given,
      ...code,
      role: roleFor(this, given),
      runtime: Runtime.NODEJS_24_X,
      handler: 'handler',
      bundling: topicFunctionBundling(code.entry),
      logGroup: this.logGroup,
      environment: { NODE_OPTIONS: '--enable-source-maps' },
    })
    this.logGroup.grantWrite(this.function)
    acknowledgeTracing(this.function, given)
    this.#serviceToken = this.#framework().serviceToken
  }

  /** Makes the topic of a stage. Throws a {@link ConfigurationError} for settings that it cannot have. */
  topicOf(scope: Construct, stage: KeyedStage, own: StageTopicProps = {}): KeyedTopic {
    const { topology, streams } = this.#parts
    return new KeyedTopic(scope, {
      topology,
      stage,
      cluster: streams.cluster,
      settings: topicSettingsOf(stage, streams.props, own),
      maker: this.function,
      serviceToken: this.#serviceToken,
    })
  }

  #framework(): Provider {
    const scope = new Construct(this, 'Framework')
    const role = roleFor(scope, {})
    const provider = new Provider(scope, 'Provider', {
      onEventHandler: this.function,
      frameworkOnEventRole: role,
      logGroup: this.logGroup,
    })
    this.logGroup.grantWrite(role)
    const versions = flattened(Stack.of(this).resolve(this.function.functionArn))
    acknowledgeWildcard(
      role.node.findChild('DefaultPolicy'),
      `${versions}:*`,
      'The framework of the CDK may invoke any version of the one function.',
    )
    return provider
  }
}
