/**
 * The model of DynamoDB behind the production store: every call of the client waits for its turn, with the faults of the
 * service. Its batched calls and queries may answer for a part: BatchGetItem and BatchWriteItem name what they left out, a query
 * says where the next page begins.
 *
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
 * @see https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Pagination.html
 */
import type { Faults } from './faults.ts'
import type { Random } from './random.ts'
import type { Owner, Scheduler } from './scheduler.ts'

/** Sends an operation to the model. What is sent may be less than what was asked for. */
export type ModelSend = (operation: string, input: object, effect: (input: object) => object) => Promise<object>

export interface ModelPortOptions {
  readonly owner: Owner
  readonly scheduler: Scheduler
  readonly random: Random
  readonly faults: () => Faults
  /** Until then the tables refuse everything. */
  readonly refusesUntilMs: () => number
  readonly count: (name: string) => void
}

/** A request for a part, and how its answer tells of the rest. */
interface Part {
  readonly input: object
  readonly rest: object
}

const writes = ['PutItem', 'TransactWriteItems']

export function modelSend(options: ModelPortOptions): ModelSend {
  const { owner, scheduler, random, faults, refusesUntilMs, count } = options
  return async (operation, input, effect) => {
    if (refusesUntilMs() > scheduler.nowMs()) {
      count('throttled call')
      throw Object.assign(new Error('the tables refuse for a while'), { name: 'ThrottlingException' })
    }
    const part = random.chance(faults().answeredInPart) ? partOf(operation, input, random) : undefined
    if (part) count(`${operation} answered in part`)
    const answer = await scheduler.call(owner, operation, () => effect(part?.input ?? input))
    const lost = writes.includes(operation)
      ? faults().lostAnswer
      : operation === 'BatchWriteItem'
        ? faults().lostDueAnswer
        : 0
    if (!random.chance(lost)) return { ...answer, ...part?.rest }
    count(`lost answer of ${operation === 'BatchWriteItem' ? 'due entries' : operation}`)
    throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
  }
}

/** Undefined where the operation answers for all or nothing, or where there is nothing to part. */
function partOf(operation: string, input: object, random: Random): Part | undefined {
  if (operation === 'Query') {
    const { Limit = 100 } = input as { Limit?: number }
    return Limit < 2 ? undefined : { input: { ...input, Limit: random.integer(1, Math.min(3, Limit - 1)) }, rest: {} }
  }
  const { RequestItems } = input as { RequestItems?: { readonly [table: string]: unknown } }
  const [table, wanted] = Object.entries(RequestItems ?? {})[0] ?? []
  if (table === undefined) return undefined
  if (operation === 'BatchWriteItem') {
    const requests = wanted as readonly unknown[]
    if (requests.length < 2) return undefined
    const taken = random.integer(1, requests.length - 1)
    return {
      input: { ...input, RequestItems: { [table]: requests.slice(0, taken) } },
      rest: { UnprocessedItems: { [table]: requests.slice(taken) } },
    }
  }
  const { Keys, ...how } = wanted as { readonly Keys: readonly unknown[] }
  if (Keys.length < 2) return undefined
  const taken = random.integer(1, Keys.length - 1)
  return {
    input: { ...input, RequestItems: { [table]: { ...how, Keys: Keys.slice(0, taken) } } },
    rest: { UnprocessedKeys: { [table]: { ...how, Keys: Keys.slice(taken) } } },
  }
}
