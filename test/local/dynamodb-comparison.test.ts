/**
 * The embedded DynamoDB and MiniStack, an emulator that others wrote, put to the same calls. `.ci/ministack run npx jest
 * test/local/dynamodb-comparison` installs and starts MiniStack; without it the comparison is skipped, and says so.
 */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { startDynamoService } from '../../lib/local/dynamodb-service.ts'
import { type CallOutcome, runDynamoCalls } from './dynamodb-call-script.ts'

const ministackUrl = process.env.MILLRACE_MINISTACK_URL

/** Where MiniStack does something else, by call, and why ours is kept. */
const knownDifferences: Readonly<Record<string, string>> = {
  'set TTL again': 'AWS refuses to enable what is enabled',
  'if begins_with(n, :he)':
    'a value of another type meets no condition, as with every other operator; a literal would be refused',
  'if attribute_type(t, :he)': 'AWS refuses a type that there is not',
  'if n > :false': 'AWS refuses an operand that has no order',
  'if n = n': 'AWS refuses to compare a path with itself',
  'if n BETWEEN :four AND :he': 'AWS refuses bounds of two types',
  'update SET a = :one, a = :one': 'AWS refuses paths that overlap',
  'update SET a = :one SET b = :one': 'AWS takes each section once',
  'update SET mp = mp + :one': 'AWS adds numbers only',
  'update SET a = :text + :one': 'AWS adds numbers only',
  'update SET fresh[0] = :one': 'AWS makes no list on the way to an element',
  'update SET a = list_append(l, :one)': 'AWS appends lists only',
  'update SET a = list_append(fresh, :list)': 'AWS refuses an operand that the item does not have',
  'update SET a :one': 'a syntax error',
  'update SET a = :one,': 'a syntax error',
  'update REMOVE mp.c.d': 'AWS refuses a path through what is no map',
  'SET 12345678901234567890123456789012345678 + -1': 'MiniStack rounds sums to 28 digits',
  'ADD -1 to 12345678901234567890123456789012345678': 'MiniStack rounds sums to 28 digits',
  'SET 12345678901234567890123456789012345678 + 0.1': 'MiniStack rounds sums; ours refuses one of 39 digits',
  'ADD 0.1 to 12345678901234567890123456789012345678': 'MiniStack rounds sums; ours refuses one of 39 digits',
  'get 5 KB, consistent': 'read units are always 1 in MiniStack',
  'get 5 KB, eventually': 'read units are always 1 in MiniStack',
  'query with OR': 'AWS takes AND only in a key condition',
  'query with <>': 'AWS has no <> in a key condition',
  'query with a filter on the key': 'AWS refuses it',
  'an action that is two': 'AWS refuses it',
}

async function outcomesOf(endpoint: string): Promise<CallOutcome[]> {
  const client = new DynamoDBClient({
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  })
  try {
    return await runDynamoCalls(client, `millrace-calls-${Date.now()}`)
  } finally {
    client.destroy()
  }
}

describe('the embedded DynamoDB and MiniStack', () => {
  if (ministackUrl === undefined) {
    console.warn(
      'The comparison with MiniStack is skipped: MILLRACE_MINISTACK_URL is not set. Run it with: .ci/ministack run npx jest test/local/dynamodb-comparison',
    )
  }
  const compare = ministackUrl === undefined ? it.skip : it

  compare(
    'answer the same calls alike, but for the differences that are listed',
    async () => {
      const service = await startDynamoService()
      const [ours, theirs] = await Promise.all([outcomesOf(service.url), outcomesOf(ministackUrl ?? '')]).finally(() =>
        service.close(),
      )
      expect(theirs.map(({ call }) => call)).toEqual(ours.map(({ call }) => call))
      const differences = ours.flatMap(({ call, outcome }, i) =>
        JSON.stringify(outcome) === JSON.stringify(theirs[i]?.outcome)
          ? []
          : [{ call, outcome, theirs: theirs[i]?.outcome }],
      )
      expect(differences.filter(({ call }) => knownDifferences[call] === undefined)).toEqual([])
      // A difference that is gone is taken off the list.
      expect(differences.map(({ call }) => call).sort()).toEqual(Object.keys(knownDifferences).sort())
    },
    120_000,
  )
})
