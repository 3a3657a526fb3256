/**
 * Stands in for what the commands meet of a deployed application, behind one URL on 127.0.0.1: the resources of a CloudFormation stack,
 * Lambda's configurations and event source mappings, and the embedded Kinesis and DynamoDB.
 *
 * What it does not model: mappings invoke nothing. A change of one shows its transition in the first look that follows, and its end in
 * the next ones.
 */
import { randomUUID } from 'node:crypto'
import { type AnnouncerBindings, bindingsVariable, type StageBindings } from '../../lib/plan/stage-bindings.ts'
import { type Answer, type Call, EmbeddedAws } from './embedded-aws.ts'

interface StandInMapping {
  readonly UUID: string
  readonly FunctionArn: string
  readonly EventSourceArn?: string
  readonly Topics?: readonly string[]
  readonly AmazonManagedKafkaEventSourceConfig?: { readonly ConsumerGroupId: string }
  readonly SelfManagedKafkaEventSourceConfig?: { readonly ConsumerGroupId: string }
  State: string
  /** What it comes to after the next look. */
  next: string | undefined
}

interface StandInFunction {
  readonly bindings: StageBindings | AnnouncerBindings | undefined
  readonly timeoutSeconds: number
}

const functionArn = (name: string): string => `arn:aws:lambda:us-east-1:000000000000:function:${name}`

const type = 'application/json'
const json = (value: unknown): Answer => ({ headers: { 'content-type': type }, body: JSON.stringify(value) })
const missing: Answer = {
  status: 404,
  headers: { 'content-type': type, 'x-amzn-errortype': 'ResourceNotFoundException' },
  body: JSON.stringify({ __type: 'ResourceNotFoundException', message: 'None.' }),
}

export class StackStandIn {
  readonly #aws: EmbeddedAws
  readonly functions = new Map<string, StandInFunction>()
  readonly mappings = new Map<string, StandInMapping>()

  private constructor(aws: EmbeddedAws) {
    this.#aws = aws
  }

  static async start(): Promise<StackStandIn> {
    const stack: StackStandIn = new StackStandIn(await EmbeddedAws.start((call) => stack.#answer(call)))
    return stack
  }

  get url(): string {
    return this.#aws.url
  }

  /** With an alias, the mapping invokes that and not the function itself. */
  deploy(
    name: string,
    bindings: StageBindings | AnnouncerBindings | undefined,
    eventSourceArn?: string,
    alias?: string,
  ): void {
    this.functions.set(name, { bindings, timeoutSeconds: 1 })
    if (eventSourceArn === undefined) return
    const UUID = randomUUID()
    const FunctionArn = [functionArn(name), ...(alias === undefined ? [] : [alias])].join(':')
    this.mappings.set(UUID, { UUID, FunctionArn, EventSourceArn: eventSourceArn, State: 'Enabled', next: undefined })
  }

  /** A mapping of a topic of Kafka to a function. A cluster without an ARN is the user's own; without a group it has its id. */
  mapTopic(name: string, topic: string, clusterArn?: string, group?: string): void {
    const UUID = randomUUID()
    const config = { ConsumerGroupId: group ?? UUID }
    const ofCluster =
      clusterArn === undefined
        ? { SelfManagedKafkaEventSourceConfig: config }
        : { EventSourceArn: clusterArn, AmazonManagedKafkaEventSourceConfig: config }
    const FunctionArn = functionArn(name)
    this.mappings.set(UUID, { UUID, FunctionArn, ...ofCluster, Topics: [topic], State: 'Enabled', next: undefined })
  }

  close(): Promise<void> {
    return this.#aws.close()
  }

  #answer({ method, url: { pathname, searchParams }, body }: Call): Answer {
    const functionName = /^\/2015-03-31\/functions\/([^/]+)\/configuration$/.exec(pathname)?.[1]
    if (functionName !== undefined) return this.#configuration(functionName)
    const [, uuid] = /^\/2015-03-31\/event-source-mappings\/?([\w-]*)$/.exec(pathname) ?? []
    if (uuid === '') return this.#mappingsOf(searchParams.get('FunctionName'), searchParams.get('EventSourceArn'))
    if (uuid !== undefined) return this.#mapping(method, uuid, body)
    const stackName = new URLSearchParams(`${body}`).get('StackName')
    return stackName === 'Visits' ? this.#resources() : noStack(stackName)
  }

  #resources(): Answer {
    const members = [...this.functions.keys()].map(
      (name) =>
        `<member><ResourceType>AWS::Lambda::Function</ResourceType><PhysicalResourceId>${name}</PhysicalResourceId></member>`,
    )
    const list = `<StackResourceSummaries>${members.join('')}</StackResourceSummaries>`
    return {
      headers: { 'content-type': 'text/xml' },
      body: `<ListStackResourcesResponse><ListStackResourcesResult>${list}</ListStackResourcesResult></ListStackResourcesResponse>`,
    }
  }

  #configuration(name: string): Answer {
    const found = this.functions.get(name)
    if (found === undefined) return missing
    const Variables = found.bindings === undefined ? {} : { [bindingsVariable]: JSON.stringify(found.bindings) }
    return json({ FunctionName: name, Timeout: found.timeoutSeconds, Environment: { Variables } })
  }

  /**
   * As Lambda does: a plain name lists what invokes the function itself, `name:alias` what invokes the alias; no name, all. What is not
   * there is not found.
   */
  #mappingsOf(functionName: string | null, eventSourceArn: string | null): Answer {
    const hasAlias = [...this.mappings.values()].some(
      ({ FunctionArn }) => FunctionArn === functionArn(functionName ?? ''),
    )
    if (functionName?.includes(':') && !hasAlias) return missing
    const found = [...this.mappings.values()].filter(
      ({ FunctionArn, EventSourceArn }) =>
        (functionName === null || FunctionArn === functionArn(functionName)) &&
        (eventSourceArn === null || EventSourceArn === eventSourceArn),
    )
    return json({ EventSourceMappings: found.map(({ next: _, ...shown }) => shown) })
  }

  #mapping(method: string, uuid: string, body: Buffer): Answer {
    const found = this.mappings.get(uuid)
    if (found === undefined) return missing
    if (method === 'DELETE') this.mappings.delete(uuid)
    if (method === 'PUT') {
      const { Enabled } = JSON.parse(`${body}`) as { readonly Enabled: boolean }
      found.State = Enabled ? 'Enabling' : 'Disabling'
      found.next = Enabled ? 'Enabled' : 'Disabled'
    }
    const { next, ...shown } = found
    if (method === 'GET' && next !== undefined) {
      found.State = next
      found.next = undefined
    }
    return json(shown)
  }
}

function noStack(name: string | null): Answer {
  const error = `<Error><Type>Sender</Type><Code>ValidationError</Code><Message>Stack with id ${name} does not exist</Message></Error>`
  return { status: 400, headers: { 'content-type': 'text/xml' }, body: `<ErrorResponse>${error}</ErrorResponse>` }
}
