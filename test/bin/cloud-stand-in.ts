/**
 * Stands in for what a redrive meets on AWS, behind one URL on 127.0.0.1: Lambda's Invoke and GetFunctionConfiguration over real workers, an
 * SQS queue, S3 objects, and the embedded Kinesis and DynamoDB.
 *
 * What it does not model: SQS's own delays, duplicates and visibility clock. Hidden messages stay hidden until `showHidden`, which stands for
 * their two minutes.
 */
import { hash, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { endpointsAt } from '../../lib/local/run/endpoints.ts'
import { bundleHandler } from '../../lib/local/run/handler-bundle.ts'
import { environmentOf } from '../../lib/local/run/stage.ts'
import { startWorkerPool, type WorkerPool } from '../../lib/local/workers/index.ts'
import { bindingsVariable, type StageBindings } from '../../lib/plan/stage-bindings.ts'
import { type Answer, type Call, EmbeddedAws } from './embedded-aws.ts'

interface Deployment {
  readonly pool: WorkerPool
  readonly bindings: StageBindings
}

const md5 = (text: string) => hash('md5', text, 'hex')
const refusal = (status: number, code: string): Answer => ({
  status,
  headers: { 'x-amzn-errortype': code },
  body: JSON.stringify({ __type: code, message: `${code}.` }),
})

export class CloudStandIn {
  readonly #aws: EmbeddedAws
  readonly #functions = new Map<string, Deployment>()
  readonly #hidden = new Map<string, string>()
  /** Bodies of the visible messages of its queue, by message id. */
  readonly messages = new Map<string, string>()
  /** By `<bucket>/<key>`. */
  readonly objects = new Map<string, string>()
  /** Events that functions were invoked with. */
  readonly events: unknown[] = []
  isThrottled = false
  refusesDeletes = false
  #handles = 0

  private constructor(aws: EmbeddedAws) {
    this.#aws = aws
  }

  static async start(): Promise<CloudStandIn> {
    const cloud: CloudStandIn = new CloudStandIn(await EmbeddedAws.start((call) => cloud.#answer(call)))
    return cloud
  }

  get url(): string {
    return this.#aws.url
  }

  get queueUrl(): string {
    return `${this.url}/000000000000/failed`
  }

  /** Deploys a function, or its next version. */
  async deploy(name: string, entry: string, directory: string, bindings: StageBindings): Promise<void> {
    await this.#functions.get(name)?.pool.stop()
    const handlerFile = await bundleHandler({ entry, directory: join(directory, 'deployed', name), bindings })
    const environment = { ...environmentOf({ bindings, endpoints: endpointsAt(this.url) }), AWS_REGION: 'us-east-1' }
    const limits = { memoryLimitMb: 512, timeoutMs: 30_000, initTimeoutMs: 60_000 }
    const settings = { size: 1, handlerFile, functionName: name, environment, ...limits }
    this.#functions.set(name, { pool: await startWorkerPool(settings), bindings })
  }

  async invoke(name: string, event: unknown) {
    const { pool } = this.#functions.get(name) as Deployment
    const functionArn = `arn:aws:lambda:us-east-1:000000000000:function:${name}`
    this.events.push(event)
    return pool.invoke(event, { requestId: randomUUID(), functionArn, shardId: 'any', lane: 0, attempt: 1 })
  }

  /** What SQS does by itself when the time of hidden messages is up. */
  showHidden(): void {
    for (const handle of [...this.#hidden.keys()]) this.#show(handle)
  }

  send(body: string): void {
    this.messages.set(randomUUID(), body)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#functions.values()].map(({ pool }) => pool.stop()))
    await this.#aws.close()
  }

  #answer({ url, target, body }: Call): Answer | Promise<Answer> {
    if (target.startsWith('AmazonSQS.')) return this.#sqs(target.slice('AmazonSQS.'.length), JSON.parse(`${body}`))
    const path = decodeURIComponent(url.pathname)
    const [, name = '', action] = /^\/2015-03-31\/functions\/([^/]+)\/(\w+)$/.exec(path) ?? []
    if (action !== undefined) return this.#lambda(name, action, body)
    const object = this.objects.get(path.slice(1))
    return object === undefined
      ? { status: 404, body: '<Error><Code>NoSuchKey</Code><Message>There is none.</Message></Error>' }
      : { body: object }
  }

  async #lambda(name: string, action: string, body: Buffer): Promise<Answer> {
    const deployment = this.#functions.get(name)
    if (deployment === undefined) return refusal(404, 'ResourceNotFoundException')
    if (action === 'configuration') {
      const Variables = { [bindingsVariable]: JSON.stringify(deployment.bindings) }
      return { body: JSON.stringify({ FunctionName: name, Timeout: 30, Environment: { Variables } }) }
    }
    if (this.isThrottled) return refusal(429, 'TooManyRequestsException')
    const outcome = await this.invoke(name, JSON.parse(`${body}`))
    if (outcome.kind === 'answered') return { body: JSON.stringify(outcome.payload) }
    const [, errorType = 'Error', errorMessage = ''] = /^(\w+): (.*)/s.exec(outcome.reason) ?? []
    return { headers: { 'x-amz-function-error': 'Unhandled' }, body: JSON.stringify({ errorType, errorMessage }) }
  }

  // biome-ignore lint/suspicious/noExplicitAny: each action has an input of its own.
  #sqs(action: string, input: any): Answer {
    const answer = (value: unknown) => ({ body: JSON.stringify(value) })
    const each = (work: (entry: { ReceiptHandle: string; MessageBody: string; Id: string }) => object) =>
      answer({ Failed: [], Successful: input.Entries.map((entry: never) => work(entry)) })
    switch (action) {
      case 'SendMessageBatch':
        return each(({ Id, MessageBody }) => {
          this.send(MessageBody)
          return { Id, MessageId: randomUUID(), MD5OfMessageBody: md5(MessageBody) }
        })
      case 'ReceiveMessage':
        return answer({ Messages: this.#receive(input.MaxNumberOfMessages) })
      case 'ChangeMessageVisibilityBatch':
        return each(({ Id, ReceiptHandle }) => {
          this.#show(ReceiptHandle)
          return { Id }
        })
      case 'DeleteMessageBatch':
        if (this.refusesDeletes) return refusal(403, 'AccessDenied')
        return each(({ Id, ReceiptHandle }) => {
          this.#hidden.delete(ReceiptHandle)
          return { Id }
        })
      default:
        return refusal(400, 'InvalidAction')
    }
  }

  #receive(count: number) {
    return [...this.messages].slice(0, count).map(([MessageId, Body]) => {
      this.#handles += 1
      const ReceiptHandle = `${MessageId} ${this.#handles}`
      this.messages.delete(MessageId)
      this.#hidden.set(ReceiptHandle, Body)
      return { MessageId, ReceiptHandle, Body, MD5OfBody: md5(Body) }
    })
  }

  #show(handle: string): void {
    const body = this.#hidden.get(handle)
    if (body !== undefined) this.messages.set(handle.split(' ')[0] ?? '', body)
    this.#hidden.delete(handle)
  }
}
