/**
 * The embedded DynamoDB and MiniStack, an emulator that others wrote, put to the same calls. `.ci/ministack run npx jest
 * test/local/services/dynamodb-comparison` installs and starts MiniStack; without it the comparison is skipped, and says so.
 */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { startDynamoService } from '../../../lib/local/services/dynamodb.ts'
import { runDynamoCalls } from './dynamodb-call-script.ts'

const ministackUrl = process.env.MILLRACE_MINISTACK_URL

interface Difference {
  readonly call: string
  readonly ours: unknown
  readonly theirs: unknown
  readonly reason: string
}

const refused = { exception: 'ValidationException' }
const unmet = { exception: 'ConditionalCheckFailedException' }
/** The item after an addition: `r` is what SET made of `v`. */
const sum = (r: string, v: string) => ({ p: { S: 'sum' }, s: { N: '1' }, r: { N: r }, v: { N: v } })

/** Where MiniStack does something else, what each does, and why ours is kept. */
const differences: readonly Difference[] = [
  {
    call: 'set TTL again',
    ours: refused,
    theirs: { AttributeName: 'expiresAt', Enabled: true },
    reason: 'AWS refuses to enable what is enabled',
  },
  {
    call: 'if begins_with(n, :he)',
    ours: unmet,
    theirs: refused,
    reason: 'a value of another type meets no condition, as with every other operator; a literal would be refused',
  },
  { call: 'if attribute_type(t, :he)', ours: refused, theirs: unmet, reason: 'AWS refuses a type that there is not' },
  { call: 'if n > :false', ours: refused, theirs: unmet, reason: 'AWS refuses an operand that has no order' },
  { call: 'if n = n', ours: refused, theirs: 'done', reason: 'AWS refuses to compare a path with itself' },
  { call: 'if n BETWEEN :four AND :he', ours: refused, theirs: unmet, reason: 'AWS refuses bounds of two types' },
  { call: 'update SET a = :one, a = :one', ours: refused, theirs: 'done', reason: 'AWS refuses paths that overlap' },
  { call: 'update SET a = :one SET b = :one', ours: refused, theirs: 'done', reason: 'AWS takes each section once' },
  { call: 'update SET mp = mp + :one', ours: refused, theirs: 'done', reason: 'AWS adds numbers only' },
  { call: 'update SET a = :text + :one', ours: refused, theirs: 'done', reason: 'AWS adds numbers only' },
  {
    call: 'update SET fresh[0] = :one',
    ours: refused,
    theirs: 'done',
    reason: 'AWS makes no list on the way to an element',
  },
  { call: 'update SET a = list_append(l, :one)', ours: refused, theirs: 'done', reason: 'AWS appends lists only' },
  {
    call: 'update SET a = list_append(fresh, :list)',
    ours: refused,
    theirs: 'done',
    reason: 'AWS refuses an operand that the item does not have',
  },
  { call: 'update SET a :one', ours: refused, theirs: 'done', reason: 'a syntax error' },
  { call: 'update SET a = :one,', ours: refused, theirs: 'done', reason: 'a syntax error' },
  { call: 'update REMOVE mp.c.d', ours: refused, theirs: 'done', reason: 'AWS refuses a path through what is no map' },
  {
    call: 'SET 12345678901234567890123456789012345678 + -1',
    ours: sum('12345678901234567890123456789012345677', '12345678901234567890123456789012345678'),
    theirs: sum('12345678901234567890123456790000000000', '12345678901234567890123456789012345678'),
    reason: 'MiniStack rounds sums to 28 digits',
  },
  {
    call: 'ADD -1 to 12345678901234567890123456789012345678',
    ours: sum('12345678901234567890123456789012345677', '12345678901234567890123456789012345677'),
    theirs: sum('12345678901234567890123456790000000000', '12345678901234567890123456790000000000'),
    reason: 'MiniStack rounds sums to 28 digits',
  },
  {
    call: 'SET 12345678901234567890123456789012345678 + 0.1',
    ours: refused,
    theirs: sum('12345678901234567890123456790000000000', '12345678901234567890123456789012345678'),
    reason: 'MiniStack rounds sums; ours refuses one of 39 digits',
  },
  {
    call: 'ADD 0.1 to 12345678901234567890123456789012345678',
    ours: refused,
    theirs: sum('12345678901234567890123456790000000000', '12345678901234567890123456790000000000'),
    reason: 'MiniStack rounds sums; ours refuses one of 39 digits',
  },
  {
    call: 'get 5 KB, consistent',
    ours: { Item: { p: { S: 'r' } }, units: 2 },
    theirs: { Item: { p: { S: 'r' } }, units: 1 },
    reason: 'MiniStack counts read units without the size',
  },
  {
    call: 'get 5 KB, eventually',
    ours: { Item: { p: { S: 'r' } }, units: 1 },
    theirs: { Item: { p: { S: 'r' } }, units: 0.5 },
    reason: 'MiniStack counts read units without the size',
  },
  {
    call: 'query with OR',
    ours: refused,
    theirs: { Count: 7, ScannedCount: 7, found: ['-10', '-1.5', '0', '2', '10', '33', '100'] },
    reason: 'AWS takes AND only in a key condition',
  },
  {
    call: 'query with <>',
    ours: refused,
    theirs: { Count: 6, ScannedCount: 6, found: ['-10', '-1.5', '2', '10', '33', '100'] },
    reason: 'AWS has no <> in a key condition',
  },
  {
    call: 'query with a filter on the key',
    ours: refused,
    theirs: { Count: 4, ScannedCount: 7, found: ['2', '10', '33', '100'] },
    reason: 'AWS refuses it',
  },
  { call: 'an action that is two', ours: refused, theirs: 'done', reason: 'AWS refuses it' },
]

async function outcomesOf(endpoint: string): Promise<ReadonlyMap<string, unknown>> {
  const client = new DynamoDBClient({
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  })
  try {
    const outcomes = await runDynamoCalls(client, endpoint, `millrace-calls-${Date.now()}`)
    return new Map(outcomes.map(({ call, outcome }) => [call, outcome]))
  } finally {
    client.destroy()
  }
}

describe('the embedded DynamoDB and MiniStack', () => {
  if (ministackUrl === undefined) {
    console.warn(
      'The comparison with MiniStack is skipped: MILLRACE_MINISTACK_URL is not set. Run it with: .ci/ministack run npx jest test/local/services/dynamodb-comparison',
    )
  }
  const compare = ministackUrl === undefined ? it.skip : it
  let ours: ReadonlyMap<string, unknown>
  let theirs: ReadonlyMap<string, unknown>
  beforeAll(async () => {
    if (ministackUrl === undefined) return
    const service = await startDynamoService()
    const both = Promise.all([outcomesOf(service.url), outcomesOf(ministackUrl)])
    ;[ours, theirs] = await both.finally(() => service.close())
  }, 240_000)

  compare('answer every call that is not in the table alike, streams included', () => {
    const listed = new Set(differences.map(({ call }) => call))
    const rest = (outcomes: ReadonlyMap<string, unknown>) => [...outcomes].filter(([call]) => !listed.has(call))
    expect(rest(ours).map(([call]) => call)).toEqual(expect.arrayContaining(['get a batch', 'read the stream']))
    expect(rest(theirs)).toEqual(rest(ours))
  })

  // A difference that is gone is taken off the list.
  compare.each(differences)('$call: $reason', ({ call, ours: own, theirs: other }) => {
    expect([ours.get(call), theirs.get(call)]).toEqual([own, other])
    expect(other).not.toEqual(own)
  })
})
