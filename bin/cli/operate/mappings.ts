/** The event source mappings of an application's functions, as Lambda has them. */
import {
  DeleteEventSourceMappingCommand,
  type EventSourceMappingConfiguration,
  GetEventSourceMappingCommand,
  type LambdaClient,
  type ListEventSourceMappingsCommandInput,
  paginateListEventSourceMappings,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda'
import { ConfigurationError, describeError } from '../../../lib/core/errors.ts'
import { eventSourceArnOf, type StageBindings } from '../../../lib/plan/stage-bindings.ts'

export class Mappings {
  readonly #client: LambdaClient
  /** By function: the mapping's id. */
  readonly #ids = new Map<string, string>()

  constructor(client: LambdaClient) {
    this.#client = client
  }

  /** As it is now; undefined where the function has none for its source. */
  async of(functionName: string, bindings: StageBindings): Promise<EventSourceMappingConfiguration | undefined> {
    const known = this.#ids.get(functionName)
    try {
      if (known !== undefined) return await this.#client.send(new GetEventSourceMappingCommand({ UUID: known }))
      for (const question of questionsFor(functionName, bindings)) {
        const found = (await this.#list(question)).find((mapping) => isOf(mapping, functionName, bindings))
        if (found?.UUID === undefined) continue
        this.#ids.set(functionName, found.UUID)
        return found
      }
      return undefined
    } catch (error) {
      if (known !== undefined && describeError(error).name === 'ResourceNotFoundException') return undefined
      throw refused(`The event source mapping of function ${functionName} cannot be read`, error)
    }
  }

  /** Nothing where that which is asked of is not there: few functions have the alias. */
  async #list(question: ListEventSourceMappingsCommandInput): Promise<readonly EventSourceMappingConfiguration[]> {
    const found: EventSourceMappingConfiguration[] = []
    try {
      for await (const page of paginateListEventSourceMappings({ client: this.#client }, question)) {
        found.push(...(page.EventSourceMappings ?? []))
      }
    } catch (error) {
      if (describeError(error).name !== 'ResourceNotFoundException') throw error
    }
    return found
  }

  /** The consumer group of a mapping of Kafka; undefined where there is no mapping. */
  async groupOf(functionName: string, bindings: StageBindings): Promise<string | undefined> {
    const found = await this.of(functionName, bindings)
    return found && (groupIn(found) ?? found.UUID)
  }

  /** The consumer group of a mapping of Kafka, where it has the name of the user's choice; else that is the mapping's id. */
  async chosenGroupOf(functionName: string, bindings: StageBindings): Promise<string | undefined> {
    const found = await this.of(functionName, bindings)
    const group = found && groupIn(found)
    return group === found?.UUID ? undefined : group
  }

  async switch(functionName: string, bindings: StageBindings, Enabled: boolean): Promise<void> {
    const found = await this.of(functionName, bindings)
    // Whoever waits for its state sees that it is missing.
    if (found?.UUID === undefined || found.State === (Enabled ? 'Enabled' : 'Disabled')) return
    try {
      await this.#client.send(new UpdateEventSourceMappingCommand({ UUID: found.UUID, Enabled }))
    } catch (error) {
      throw refused(`The event source mapping of function ${functionName} cannot be updated`, error)
    }
  }

  /** A position that does not change would change nothing for CloudFormation. */
  async checkRemoval(functionName: string, bindings: StageBindings, fromMs: number): Promise<void> {
    const startsAt = (await this.of(functionName, bindings))?.StartingPositionTimestamp
    if (startsAt === undefined || seconds(startsAt.getTime()) !== seconds(fromMs)) return
    throw new ConfigurationError(
      `The mapping of function ${functionName} was made with that very starting position, so a deployment would not make it anew: reset from another time, a second apart.`,
    )
  }

  /** Deletes a disabled mapping, so that a deployment can make it anew with another starting position. */
  async remove(functionName: string, bindings: StageBindings): Promise<void> {
    const found = await this.of(functionName, bindings)
    if (found?.UUID === undefined) return
    try {
      await this.#client.send(new DeleteEventSourceMappingCommand({ UUID: found.UUID }))
    } catch (error) {
      throw refused(`The event source mapping of function ${functionName} cannot be deleted`, error)
    }
  }
}

const groupIn = ({
  AmazonManagedKafkaEventSourceConfig: managed,
  SelfManagedKafkaEventSourceConfig: own,
}: EventSourceMappingConfiguration): string | undefined => managed?.ConsumerGroupId ?? own?.ConsumerGroupId

const seconds = (ms: number): number => Math.floor(ms / 1_000)

/**
 * What to ask Lambda for a stage's mapping. By the plain name it lists what invokes the function itself, and with provisioned concurrency
 * the mapping invokes the alias `live`: so it is asked by the source, which is one whatever is invoked. Only a Kafka cluster of the
 * user's own has no ARN.
 */
function questionsFor(
  functionName: string,
  { sources }: StageBindings,
): readonly ListEventSourceMappingsCommandInput[] {
  const arns = sources.map(eventSourceArnOf).filter((arn) => arn !== undefined)
  if (arns.length > 0) return arns.map((EventSourceArn) => ({ EventSourceArn }))
  return [{ FunctionName: functionName }, { FunctionName: `${functionName}:live` }]
}

/** A source may have mappings to other functions, and a function mappings of its user's beside that of its stage. */
function isOf(
  { FunctionArn = '', EventSourceArn, Topics = [] }: EventSourceMappingConfiguration,
  functionName: string,
  { sources }: StageBindings,
): boolean {
  // arn:aws:lambda:<region>:<account>:function:<name>, and where an alias is invoked, its name.
  if (FunctionArn.split(':')[6] !== functionName) return false
  return sources.some(
    (source) =>
      eventSourceArnOf(source) === EventSourceArn && (source.kind !== 'kafka' || Topics.includes(source.topic)),
  )
}

export function refused(what: string, error: unknown): ConfigurationError {
  const { name, message } = describeError(error)
  return new ConfigurationError(`${what}: ${name}: ${message.split('\n')[0]}`, { cause: error })
}
