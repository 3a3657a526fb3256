import fc from 'fast-check'
import type { AttributeValue, Item, UpdateItemInput } from '../../../lib/emulator/dynamodb/index.ts'
import { errorOf, get, key, modelWithTable, number, put, TableName, text } from './model-fixture.ts'

type Parameters = Pick<UpdateItemInput, 'ExpressionAttributeNames' | 'ExpressionAttributeValues'>

function updated(item: Item, UpdateExpression: string, parameters: Parameters = {}): Item {
  const { model } = modelWithTable()
  put(model, { ...key('k'), ...item })
  const input = { TableName, Key: key('k'), UpdateExpression, ReturnValues: 'ALL_NEW' as const, ...parameters }
  const { p: _, ...attributes } = model.call('UpdateItem', input).Attributes ?? {}
  return attributes
}

describe('an update', () => {
  it('sums exactly over any sequence of ADD and SET, as BigInt does', () => {
    const step = fc.tuple(
      fc.constantFrom('ADD n :v', 'SET n = n + :v', 'SET n = n - :v', 'SET n = :v + n'),
      fc.bigInt({ min: -(10n ** 36n), max: 10n ** 36n }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 9 }), (steps) => {
        const { model } = modelWithTable()
        put(model, { ...key('k'), n: number(0) })
        let expected = 0n
        for (const [UpdateExpression, value] of steps) {
          const ExpressionAttributeValues = { ':v': number(value) }
          model.call('UpdateItem', { TableName, Key: key('k'), UpdateExpression, ExpressionAttributeValues })
          expected += UpdateExpression.includes('-') ? -value : value
        }
        expect(get(model, key('k'))?.n).toEqual(number(expected))
      }),
    )
  })

  it('changes sets as sets', () => {
    const members = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'é'), { minLength: 1 })
    const step = fc.tuple(fc.constantFrom('ADD', 'DELETE'), members)
    fc.assert(
      fc.property(fc.array(step, { maxLength: 9 }), (steps) => {
        const { model } = modelWithTable()
        const expected = new Set<string>()
        for (const [action, SS] of steps) {
          const input = { UpdateExpression: `${action} t :t`, ExpressionAttributeValues: { ':t': { SS } } }
          model.call('UpdateItem', { TableName, Key: key('k'), ...input })
          for (const member of SS) action === 'ADD' ? expected.add(member) : expected.delete(member)
        }
        const held = get(model, key('k'))?.t
        expect(held?.SS === undefined ? [] : [...held.SS].sort()).toEqual([...expected].sort())
        // A set that lost its last element is gone.
        expect(held === undefined).toBe(expected.size === 0)
      }),
    )
  })

  it('sets and removes elements of a list by the indices before the update', () => {
    const list = fc.array(fc.integer({ min: 0, max: 99 }), { maxLength: 6 })
    const actions = fc.uniqueArray(fc.tuple(fc.nat(8), fc.boolean()), { selector: ([index]) => index, minLength: 1 })
    fc.assert(
      fc.property(list, actions, (before, changes) => {
        const sets = changes.filter(([, isSet]) => isSet).map(([index]) => index)
        const removals = changes.filter(([, isSet]) => !isSet).map(([index]) => index)
        const expression = [
          sets.length > 0 ? `SET ${sets.map((index) => `l[${index}] = :v`).join(', ')}` : '',
          removals.length > 0 ? `REMOVE ${removals.map((index) => `l[${index}]`).join(', ')}` : '',
        ].join(' ')
        const after = updated(
          { l: { L: before.map(number) } },
          expression,
          sets.length > 0 ? { ExpressionAttributeValues: { ':v': number(-1) } } : {},
        )
        const kept: (number | undefined)[] = [...before]
        for (const index of sets.filter((at) => at < before.length)) kept[index] = -1
        for (const _ of sets.filter((at) => at >= before.length)) kept.push(-1)
        // Removals name places in the list as the sets left it.
        const expected = kept.filter((_, index) => !removals.includes(index))
        expect(after.l?.L?.map(({ N }) => Number(N))).toEqual(expected)
      }),
    )
  })

  it('reads every operand from the item as it was', () => {
    const before = { a: number(1), b: number(2) }
    expect(updated(before, 'SET a = b, b = a REMOVE c')).toEqual({ a: number(2), b: number(1) })
  })

  it('falls back where an attribute is not there, and appends to lists on either side', () => {
    const ExpressionAttributeValues = { ':n': number(9), ':l': { L: [text('x')] }, ':none': { L: [] } }
    const expression =
      'SET n = if_not_exists(n, :n), m = if_not_exists(m, :n), l = list_append(l, :l), k = list_append(:l, if_not_exists(k, :none))'
    const before = { n: number(1), l: { L: [text('a'), text('b')] } }
    expect(updated(before, expression, { ExpressionAttributeValues })).toEqual({
      n: number(1),
      m: number(9),
      l: { L: [text('a'), text('b'), text('x')] },
      k: { L: [text('x')] },
    })
  })

  it('keeps what it does not name, inside of maps and lists too', () => {
    const before: Item = {
      m: { M: { x: number(1), l: { L: [text('a'), { M: { y: number(2), z: number(3) } }] } } },
      o: text('o'),
    }
    const after = updated(before, 'SET m.l[1].y = :v', { ExpressionAttributeValues: { ':v': number(9) } })
    expect(after).toEqual({
      m: { M: { x: number(1), l: { L: [text('a'), { M: { y: number(9), z: number(3) } }] } } },
      o: text('o'),
    })
  })

  it('takes names that objects have by themselves', () => {
    const ExpressionAttributeNames = { '#a': '__proto__', '#b': 'constructor', '#c': 'm' }
    const item = updated({ m: { M: {} } }, 'SET #a = :v, #c.#a = :v, #c.#b = :v', {
      ExpressionAttributeNames,
      ExpressionAttributeValues: { ':v': number(1) },
    })
    expect(Object.getOwnPropertyDescriptor(item, '__proto__')?.value ?? 'lost by this test').toBeDefined()
    expect(Object.keys(item.m?.M ?? {}).sort()).toEqual(['__proto__', 'constructor'])
    expect(updated({ x: number(1) }, 'REMOVE #b', { ExpressionAttributeNames: { '#b': 'constructor' } })).toEqual({
      x: number(1),
    })
    expect(() => updated({}, 'SET y = #b', { ExpressionAttributeNames: { '#b': 'toString' } })).toThrow(
      'does not exist',
    )
  })

  it('returns what was asked for', () => {
    const { model } = modelWithTable()
    put(model, { ...key('k'), n: number(1), m: { M: { x: number(1), y: number(1) } }, o: text('o') })
    const set = (ReturnValues: UpdateItemInput['ReturnValues']) =>
      model.call('UpdateItem', {
        TableName,
        Key: key('k'),
        UpdateExpression: 'SET n = n + :one, m.x = n, fresh = :one',
        ExpressionAttributeValues: { ':one': number(1) },
        ReturnValues,
      }).Attributes
    expect(set('UPDATED_OLD')).toEqual({ n: number(1), m: { M: { x: number(1) } } })
    expect(set('UPDATED_NEW')).toEqual({ n: number(3), m: { M: { x: number(2) } }, fresh: number(1) })
    expect(set('ALL_OLD')).toMatchObject({ n: number(3), o: text('o') })
    expect(set('NONE')).toBeUndefined()
  })

  it.each<[string, Record<string, AttributeValue>, string]>([
    ['SET p = :v', { ':v': number(1) }, 'Cannot update attribute p. This attribute is part of the key'],
    ['SET a = :v, a.b = :v', { ':v': number(1) }, 'Two document paths overlap'],
    ['SET a.b = :v, a[1] = :v', { ':v': number(1) }, 'Two document paths conflict'],
    ['ADD m.x :v', { ':v': number(1) }, 'ADD changes attributes of the item'],
    ['SET a = absent', {}, 'refers to an attribute that does not exist'],
    ['SET a.b = :v', { ':v': number(1) }, 'document path provided in the update expression is invalid'],
    ['SET n = n + t', {}, 'incorrect data type'],
    ['ADD t :v', { ':v': number(1) }, 'incorrect data type'],
    ['SET #a = :v', { ':v': number(1) }, 'attribute name: #a'],
    ['SET a = :other', { ':v': number(1) }, 'attribute value: :other'],
    ['SET a = if_exists(a, :v)', { ':v': number(1) }, 'Invalid function name; function: if_exists'],
    ['SET name = :v', { ':v': number(1) }, 'reserved keyword: name'],
    ['SET a = :v', { ':v': number(1), ':w': number(1) }, 'unused in expressions: keys: {:w}'],
  ])('refuses %s, says why and changes nothing', (UpdateExpression, values, message) => {
    const { model } = modelWithTable()
    const before = { ...key('k'), n: number(1), t: text('t') }
    put(model, before)
    const parameters = Object.keys(values).length > 0 ? { ExpressionAttributeValues: values } : {}
    const error = errorOf(() => model.call('UpdateItem', { TableName, Key: key('k'), UpdateExpression, ...parameters }))
    expect(error.name).toBe('ValidationException')
    expect(error.message).toContain(message)
    expect(get(model, key('k'))).toEqual(before)
  })

  it('refuses an expression of more than 4 KB', () => {
    const UpdateExpression = `REMOVE ${'a'.repeat(4_096 - 'REMOVE '.length)}`
    expect(() => updated({}, UpdateExpression)).not.toThrow()
    expect(() => updated({}, `${UpdateExpression}a`)).toThrow('maximum allowed size; expression size: 4097')
  })
})
