/**
 * The topic of a keyed stage, as a custom resource of CloudFormation: one that makes it and keeps its settings, and one that is made
 * anew with each deployment and refuses a topic that is not what it was.
 *
 * 1. A topic of ours gets a name of its own with each creation, which the same request gives again: a request that comes twice makes one
 *    topic, and a stage that is deleted and made again does not begin with the frames of its former self.
 * 2. The resource's physical id is `<topic>/<id of the topic>`: what is there under that name with another id is another topic, which is
 *    neither changed nor deleted. That of a topic that the user brought goes on with `/brought`, whatever is asked for later.
 * 3. Only the creation of a check refuses. An update that did would refuse its own rollback too, and leave the stack stuck.
 * 4. Nothing is deleted unless that is asked. A topic that the user brought is never changed or deleted: it is known by its physical
 *    id, and ours besides by their names.
 */
import { createHash } from 'node:crypto'
import type { CloudFormationCustomResourceEvent } from 'aws-lambda'
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError } from '../../core/errors.ts'
import type { KafkaCluster } from '../../plan/stage-bindings.ts'
import { frameSettings, type TopicRequest, topicCheckType } from '../../plan/topic-request.ts'
import type { KafkaAdmin, KafkaTopic } from './kafka-port.ts'
import { patiently } from './topic-patience.ts'
import { checkKeyedTopic, isLikeOurs } from './topic-rules.ts'

export interface TopicResourcePorts {
  /** Such as `openAdmin`. */
  readonly open: (cluster: KafkaCluster) => KafkaAdmin
  readonly clock: Clock
}

const betweenLooksMs = 200

/** What CloudFormation is told: the attributes `Topic` and `TopicId`. */
export interface TopicAnswer {
  readonly PhysicalResourceId: string
  readonly Data: { readonly Topic: string; readonly TopicId: string }
}

/** One topic, as it is known from when it was made. */
interface Remembered {
  readonly topic: string
  readonly topicId: string
  readonly isBrought?: boolean
}

/** One deployment's dealings with a cluster. */
interface Dealings {
  readonly event: CloudFormationCustomResourceEvent
  readonly request: TopicRequest
  readonly signal: AbortSignal
  readonly clock: Clock
  /** Asks until it is answered or the signal aborts. */
  ask<T>(question: (admin: KafkaAdmin) => Promise<T>): Promise<T>
}

/**
 * Does what CloudFormation asks for, within the time that the signal gives. Rejects with a {@link ConfigurationError} that names the
 * topic, the value and the remedy.
 *
 * @example
 * const { Data } = await answerDeployment(event, { open: (cluster) => openAdmin(connectionTo(cluster)), clock }, signal)
 */
export async function answerDeployment(
  event: CloudFormationCustomResourceEvent,
  ports: TopicResourcePorts,
  signal: AbortSignal,
): Promise<TopicAnswer> {
  const request = requestIn(event)
  const isCheck = event.ResourceType === topicCheckType
  // A stack must go even where its cluster is gone.
  const touchesNothing = event.RequestType === 'Delete' && (isCheck || !request.isDeletedWithStage)
  if (touchesNothing || (isCheck && event.RequestType === 'Update')) return answerAs(event.PhysicalResourceId)
  const admin = ports.open(request.cluster)
  const ask: Dealings['ask'] = (question) => patiently(request, ports.clock, signal, () => question(admin))
  try {
    const dealings = { event, request, signal, ask, clock: ports.clock }
    return answerOf(await (isCheck ? check(dealings) : keep(dealings)))
  } finally {
    admin.close().catch(() => undefined)
  }
}

function requestIn({ ResourceProperties, LogicalResourceId }: CloudFormationCustomResourceEvent): TopicRequest {
  const request: TopicRequest = JSON.parse(ResourceProperties.Request)
  if (request.formatVersion === 1) return request
  throw new ConfigurationError(
    `the resource ${LogicalResourceId} asks for a topic in the format version ${request.formatVersion}, and this release of Millrace reads 1: deploy with one release of it.`,
  )
}

const answerOf = ({ topic, topicId, isBrought = false }: Remembered): TopicAnswer => ({
  PhysicalResourceId: `${topic}/${topicId}${isBrought ? '/brought' : ''}`,
  Data: { Topic: topic, TopicId: topicId },
})

function remembered(physicalId: string): Remembered {
  const [topic = '', topicId = '', brought] = physicalId.split('/')
  return { topic, topicId, isBrought: brought === 'brought' }
}

const answerAs = (physicalId: string): TopicAnswer => ({
  ...answerOf(remembered(physicalId)),
  PhysicalResourceId: physicalId,
})

async function keep(dealings: Dealings): Promise<Remembered> {
  const { event } = dealings
  if (event.RequestType === 'Create') return await make(dealings)
  const made = remembered(event.PhysicalResourceId)
  if (made.isBrought || !isLikeOurs(made.topic, dealings.request)) return made
  const found = await dealings.ask((admin) => admin.topic(made.topic, dealings.signal))
  // What is another topic is the check's to refuse.
  if (found?.id !== made.topicId) return made
  if (event.RequestType === 'Delete') await dealings.ask((admin) => admin.deleteTopic(made.topic, dealings.signal))
  else await adjust(made.topic, dealings)
  return made
}

async function make(dealings: Dealings): Promise<Remembered> {
  const { request, signal, ask } = dealings
  const { partitions, replicas } = request
  if ('name' in request.topic) {
    const { name } = request.topic
    const found = await ask((admin) => admin.topic(name, signal))
    return { topic: name, topicId: there(found, name, request).id, isBrought: true }
  }
  const name = `${request.topic.prefix}${uniqueFor(dealings.event)}`
  const configs = settingsFor(request)
  const made = await ask((admin) =>
    admin.createTopic(name, { partitions, configs, ...(replicas === undefined ? {} : { replicas }) }, signal),
  )
  await adjust(name, dealings)
  return { topic: name, topicId: made.id }
}

const settingsFor = ({ settings, retentionMs }: TopicRequest): Readonly<Record<string, string>> => ({
  ...settings,
  ...frameSettings(retentionMs),
})

/** Sets what is not as asked for, and waits until the brokers say so: a check may come at once. */
async function adjust(topic: string, { request, signal, clock, ask }: Dealings): Promise<void> {
  const wanted = settingsFor(request)
  const others = (held: ReadonlyMap<string, string>, settings: Readonly<Record<string, string>>) =>
    Object.entries(settings).filter(([name, value]) => held.has(name) && held.get(name) !== value)
  let held = await ask((admin) => admin.settingsOf(topic, signal))
  const changes = Object.fromEntries(others(held, wanted))
  if (Object.keys(changes).length === 0) return
  await ask((admin) => admin.changeSettings(topic, changes, signal))
  while (others(held, frameSettings(request.retentionMs)).length > 0) {
    await clock.sleep(betweenLooksMs, signal)
    held = await ask((admin) => admin.settingsOf(topic, signal))
  }
}

/** The same for a request that comes again. */
const uniqueFor = ({ StackId, LogicalResourceId, RequestId }: CloudFormationCustomResourceEvent): string =>
  createHash('sha256').update(`${StackId} ${LogicalResourceId} ${RequestId}`).digest('hex').slice(0, 10)

function there(found: KafkaTopic | undefined, name: string, { stage }: TopicRequest): KafkaTopic {
  if (found) return found
  throw new ConfigurationError(
    `there is no topic "${name}", which stage "${stage}" is to read: make it first, or leave \`name\` out to get one.`,
    { code: 'unknown-topic' },
  )
}

async function check({ event, request, signal, ask }: Dealings): Promise<Remembered> {
  const { Topic: topic, TopicId: topicId } = event.ResourceProperties
  const found = await ask((admin) => admin.topic(topic, signal))
  const settings = found && (await ask((admin) => admin.settingsOf(topic, signal)))
  checkKeyedTopic(request, { topic, topicId }, found && settings && { ...found, settings })
  return { topic, topicId }
}
