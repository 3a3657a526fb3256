import { type Faults, noFaults } from '../../../lib/testing/simulator/faults.ts'
import { modelSend } from '../../../lib/testing/simulator/model-port.ts'
import { Random } from '../../../lib/testing/simulator/random.ts'
import { newOwner } from '../../../lib/testing/simulator/scheduler.ts'
import { run, scheduler } from './simulator-world.ts'

type Items = { readonly table: readonly number[] | { readonly Keys: readonly number[] } }

/** What was sent to the model, and what was not. */
interface Answer {
  readonly sent: { readonly RequestItems?: Items; readonly Limit?: number }
  readonly UnprocessedKeys?: Items
  readonly UnprocessedItems?: Items
}

const listed = (items: Items | undefined): readonly number[] => {
  const { table = [] } = items ?? {}
  return 'Keys' in table ? table.Keys : table
}

function world(faults: Partial<Faults>) {
  const clocked = scheduler()
  const met: string[] = []
  const send = modelSend({
    owner: newOwner('test'),
    scheduler: clocked,
    random: new Random(1),
    faults: () => ({ ...noFaults, ...faults }),
    refusesUntilMs: () => 0,
    count: (name) => met.push(name),
  })
  /** Answers with what the model was asked for. */
  const asked = async (operation: string, input: object) => {
    const answer = send(operation, input, (sent) => ({ sent }))
    await Promise.all([answer.catch(() => undefined), run(clocked)])
    return answer as Promise<Answer>
  }
  return { met, asked }
}

test.each([
  ['BatchGetItem', { Keys: [1, 2, 3], ConsistentRead: true }, 'UnprocessedKeys'],
  ['BatchWriteItem', [1, 2, 3], 'UnprocessedItems'],
] as const)('%s asks for a part and names the rest', async (operation, wanted, rest) => {
  const { met, asked } = world({ answeredInPart: 1 })
  const answer = await asked(operation, { RequestItems: { table: wanted } })
  const parts = [listed(answer.sent.RequestItems), listed(answer[rest])]
  expect(parts.flat()).toEqual([1, 2, 3])
  for (const part of parts) expect(part.length).toBeGreaterThan(0)
  expect(met).toEqual([`${operation} answered in part`])
})

test('a query ends its page early', async () => {
  const { asked } = world({ answeredInPart: 1 })
  const { sent } = await asked('Query', { TableName: 'table', Limit: 50 })
  expect(sent.Limit).toBeLessThan(4)
})

test('one item is not parted', async () => {
  const { met, asked } = world({ answeredInPart: 1 })
  await asked('BatchGetItem', { RequestItems: { table: { Keys: [1] } } })
  expect(met).toEqual([])
})

test('a write whose answer is lost took place', async () => {
  const { met, asked } = world({ lostAnswer: 1 })
  await expect(asked('PutItem', {})).rejects.toMatchObject({ code: 'ECONNRESET' })
  expect(met).toEqual(['lost answer of PutItem'])
})
