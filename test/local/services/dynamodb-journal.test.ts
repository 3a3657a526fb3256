import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import type { AttributeValue, DynamoEffect, Item } from '../../../lib/emulator/dynamodb/index.ts'
import { openDynamoJournal } from '../../../lib/local/services/dynamodb-journal.ts'

let directory: string
let path: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'millrace-journal-'))
  path = join(directory, 'dynamodb.journal')
})
afterEach(() => rm(directory, { recursive: true, force: true }))

async function write(effects: readonly DynamoEffect[]): Promise<void> {
  const journal = await openDynamoJournal(path, () => {})
  for (const effect of effects) journal.add(effect)
  await journal.close()
}

async function read(): Promise<DynamoEffect[]> {
  const effects: DynamoEffect[] = []
  await (await openDynamoJournal(path, (effect) => effects.push(effect))).close()
  return effects
}

const { value } = fc.letrec<{ value: AttributeValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.string({ unit: 'grapheme' }).map((S) => ({ S })),
    fc.bigInt().map((n) => ({ N: String(n) })),
    fc.uint8Array({ maxLength: 9 }).map((bytes) => ({ B: Buffer.from(bytes) })),
    fc.boolean().map((BOOL) => ({ BOOL })),
    fc.constant({ NULL: true }),
    fc
      .array(fc.uint8Array({ minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 })
      .map((list) => ({ BS: list.map((bytes) => Buffer.from(bytes)) })),
    fc.constant({ SS: ['a', 'b'] }),
    fc.constant({ NS: ['1', '2'] }),
    fc.array(tie('value'), { maxLength: 3 }).map((L) => ({ L })),
    fc
      .dictionary(fc.oneof(fc.string(), fc.constantFrom('constructor', 'B', 'item')), tie('value'), {
        maxKeys: 3,
        noNullPrototype: true,
      })
      .map((M) => ({ M })),
  ),
}))
const item: fc.Arbitrary<Item> = fc.dictionary(fc.string({ minLength: 1 }), value, {
  maxKeys: 4,
  noNullPrototype: true,
})

const written = (items: readonly Item[]): DynamoEffect => ({
  type: 'items-written',
  atMs: 5,
  by: 'request',
  writes: items.flatMap((content) => [
    { table: 'orders', item: content },
    { table: 'orders', deleted: content },
  ]),
  token: { token: 't', fingerprint: 'f' },
})

it('gives back every effect in order, with values of every type', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(item, { maxLength: 3 }), { maxLength: 3 }), async (batches) => {
      const effects: DynamoEffect[] = [
        {
          type: 'table-created',
          table: 'orders',
          atMs: 1,
          definition: {
            attributes: [{ AttributeName: 'p', AttributeType: 'S' }],
            keySchema: [{ AttributeName: 'p', KeyType: 'HASH' }],
            streamView: null,
          },
        },
        { type: 'ttl-set', table: 'orders', attribute: 'expires' },
        ...batches.map(written),
        { type: 'table-deleted', table: 'orders', atMs: 9 },
      ]
      await write(effects)
      expect(await read()).toEqual(effects)
      await rm(path)
    }),
    { numRuns: 40 },
  )
})

it('cuts off a torn last line, and names file and line of any other damage', async () => {
  await write([written([{ p: { S: 'a' } }])])
  const whole = await readFile(path)
  await appendFile(path, '12345678 {"type":')
  expect(await read()).toHaveLength(1)
  expect(await readFile(path)).toEqual(whole)
  const damaged = Buffer.from(whole)
  damaged[whole.length - 10] = (damaged[whole.length - 10] ?? 0) ^ 1
  await writeFile(path, damaged)
  await expect(read()).rejects.toThrow(
    `The journal of the embedded DynamoDB is damaged at ${path}:2: its checksum does not match. Restore the file, or delete it to begin with no tables.`,
  )
})

it('does not read what another service or a newer release wrote', async () => {
  await write([])
  await writeFile(path, (await readFile(path, 'utf8')).replace('dynamodb', 'kinesis'))
  await expect(read()).rejects.toBeInstanceOf(ConfigurationError)
})
