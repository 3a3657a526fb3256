/** The part of the call script that is about expressions: conditions and updates, those that are refused too. */
import type { Item, TableCalls } from './dynamodb-table-calls.ts'

export async function noteConditions(calls: TableCalls): Promise<void> {
  await calls.put('put for conditions', {
    ...calls.key('c'),
    n: { N: '5' },
    t: { S: 'hello' },
    b: { B: Uint8Array.from([1, 2, 3]) },
    tags: { SS: ['x', 'y'] },
    seq: { L: [{ N: '1' }, { S: 'two' }] },
    obj: { M: { deep: { N: '7' }, 'odd.name': { S: 'dot' } } },
    flag: { BOOL: false },
  })
  const values: Item = {
    ':five': { N: '5.0' },
    ':six': { N: '6' },
    ':four': { N: '4' },
    ':he': { S: 'he' },
    ':ell': { S: 'ell' },
    ':x': { S: 'x' },
    ':two': { S: 'two' },
    ':N': { S: 'N' },
    ':M': { S: 'M' },
    ':bytes': { B: Uint8Array.from([1, 2]) },
    ':false': { BOOL: false },
    ':set': { SS: ['y', 'x'] },
  }
  const expressions = [
    'attribute_exists(n)',
    'attribute_not_exists(n)',
    'attribute_not_exists(absent) AND n = :five',
    'n = :five',
    'n <> :five',
    'n < :six',
    'n <= :five',
    'n > :four',
    'n >= :six',
    'n < :he',
    'n <> :he',
    'absent = :five',
    'absent <> :five',
    'absent < :five',
    'NOT absent = :five',
    'n BETWEEN :four AND :six',
    'n NOT BETWEEN :four AND :six',
    'n IN (:four, :five)',
    'n IN (:four)',
    't IN (:he, :two)',
    'begins_with(t, :he)',
    'begins_with(t, :ell)',
    'begins_with(b, :bytes)',
    'begins_with(n, :he)',
    'contains(t, :ell)',
    'contains(tags, :x)',
    'contains(tags, :he)',
    'contains(seq, :two)',
    'contains(seq, :five)',
    'attribute_type(n, :N)',
    'attribute_type(obj, :M)',
    'attribute_type(t, :N)',
    'attribute_type(t, :he)',
    'size(t) = :five',
    'size(b) < :four',
    'size(tags) < :four',
    'size(seq) < size(t)',
    'size(n) = :five',
    'obj.deep > :six',
    'obj.#odd = :two',
    'seq[0] < :four AND seq[1] = :two',
    'seq[7] = :two',
    'tags = :set',
    'flag = :false',
    'n = :five AND t = :he OR flag = :false',
    'n = :five AND (t = :he OR flag = :false)',
    'NOT (n = :five AND t = :he)',
    'not n = :six and n = :five',
    'n > :false',
    'n = n',
    'n BETWEEN :six AND :four',
    'n BETWEEN :four AND :he',
    'n = ',
    'n == :five',
    'unknown(n)',
    'n = :five extra',
    'status = :five',
    '#undefined = :five',
    'n = :undefined',
    '',
  ]
  for (const expression of expressions) {
    const used = (sign: string) => new Set(expression.match(new RegExp(`${sign}\\w+`, 'g')))
    const given = Object.fromEntries(Object.entries(values).filter(([name]) => used(':').has(name)))
    await calls.update(`if ${expression}`, calls.key('c'), undefined, {
      ReturnValues: 'NONE',
      ConditionExpression: expression,
      ...(Object.keys(given).length > 0 ? { ExpressionAttributeValues: given } : {}),
      ...(expression.includes('#odd') ? { ExpressionAttributeNames: { '#odd': 'odd.name' } } : {}),
    })
  }
  const failing = { ConditionExpression: 'n = :six', ExpressionAttributeValues: { ':six': { N: '6' } } }
  const showing = { ...failing, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const }
  await calls.put('a failed put shows the item', calls.key('c'), showing)
  await calls.update('a failed update shows the item', calls.key('c'), 'SET x = :six', showing)
  await calls.delete('a failed delete shows the item', calls.key('c'), showing)
  await calls.delete('a failed delete shows nothing unless asked', calls.key('c'), failing)
  await calls.delete('a failed condition on nothing', calls.key('none'), showing)
  const unused = { ...failing.ExpressionAttributeValues, ':other': { N: '1' } }
  await calls.put('a value that is not used', calls.key('c'), { ...failing, ExpressionAttributeValues: unused })
  await calls.put('a name that is not used', calls.key('c'), { ...failing, ExpressionAttributeNames: { '#a': 'a' } })
  await calls.put('values without an expression', calls.key('c'), {
    ExpressionAttributeValues: failing.ExpressionAttributeValues,
  })
  await calls.put('no names at all', calls.key('c'), { ...failing, ExpressionAttributeNames: {} })
}

export async function noteUpdates(calls: TableCalls): Promise<void> {
  const key = calls.key('u')
  const one: Item = { ':one': { N: '1' } }
  await calls.update('an update makes the item', key, 'SET n = :one', { ExpressionAttributeValues: one })
  await calls.update('add and subtract', key, 'SET n = n + :two, m = :two - :ten', {
    ExpressionAttributeValues: { ':two': { N: '2' }, ':ten': { N: '10' } },
  })
  await calls.update('swap', key, 'SET n = m, m = n')
  await calls.update('if_not_exists', key, 'SET n = if_not_exists(n, :one), k = if_not_exists(k, :one) + :one', {
    ExpressionAttributeValues: one,
  })
  await calls.update('list_append', key, 'SET l = list_append(if_not_exists(l, :none), :some)', {
    ExpressionAttributeValues: { ':none': { L: [] }, ':some': { L: [{ N: '1' }, { N: '2' }, { N: '3' }] } },
  })
  await calls.update('set and remove elements', key, 'SET l[9] = :one, l[0] = :one REMOVE l[1]', {
    ExpressionAttributeValues: one,
  })
  await calls.update('set a map and what is in it', key, 'SET mp = :map', {
    ExpressionAttributeValues: { ':map': { M: { a: { N: '1' }, b: { L: [] } } } },
  })
  await calls.update('set in a map', key, 'SET mp.a = mp.a + :one, mp.c = :one REMOVE mp.b, mp.nil', {
    ExpressionAttributeValues: one,
  })
  await calls.update('add to numbers and sets', key, 'ADD n :one, fresh :one, tags :tags', {
    ExpressionAttributeValues: { ...one, ':tags': { SS: ['a', 'b'] } },
  })
  await calls.update('add to a set', key, 'ADD tags :tags', {
    ExpressionAttributeValues: { ':tags': { SS: ['b', 'c'] } },
  })
  await calls.update('delete from a set', key, 'DELETE tags :tags, nil :tags', {
    ExpressionAttributeValues: { ':tags': { SS: ['a', 'z'] } },
  })
  await calls.update('delete all of a set', key, 'DELETE tags :tags', {
    ExpressionAttributeValues: { ':tags': { SS: ['b', 'c'] } },
  })
  for (const ReturnValues of ['NONE', 'ALL_OLD', 'UPDATED_OLD', 'UPDATED_NEW'] as const) {
    await calls.update(`return ${ReturnValues}`, key, 'SET n = n + :one, mp.c = :one', {
      ReturnValues,
      ExpressionAttributeValues: one,
    })
  }
  await calls.update('remove attributes', key, 'REMOVE n, m, nil')
  await calls.update('an update of nothing makes an item of the key', calls.key('fresh'), undefined)
  await calls.update('names by reference', key, 'SET #status = :one, #m.#dot = :one', {
    ExpressionAttributeNames: { '#status': 'status', '#m': 'mp', '#dot': 'a.b' },
    ExpressionAttributeValues: one,
  })
}

export async function noteRefusedUpdates(calls: TableCalls): Promise<void> {
  const key = calls.key('u')
  const values: Item = { ':one': { N: '1' }, ':text': { S: 'x' }, ':set': { NS: ['1'] }, ':list': { L: [] } }
  const expressions = [
    'SET p = :one',
    'SET a = :one, a = :one',
    'SET a = :one, a.b = :one',
    'SET a.b = :one REMOVE a[0]',
    'SET a = :one SET b = :one',
    'SET a = absent',
    'SET a = absent + :one',
    'SET mp = mp + :one',
    'SET a = :text + :one',
    'SET a.b.c = :one',
    'SET l.x = :one',
    'SET fresh[0] = :one',
    'SET a = list_append(l, :one)',
    'SET a = list_append(fresh, :list)',
    'ADD mp :one',
    'ADD a :text',
    'ADD a :list',
    'DELETE a :one',
    'DELETE fresh :set',
    'SET status = :one',
    'SET a = unknown(a, :one)',
    'PUT a :one',
    'SET a :one',
    'SET a = :one,',
    'SET a.size = :one',
    'REMOVE mp.c.d',
    '',
  ]
  for (const expression of expressions) {
    const used = new Set(expression.match(/:\w+/g))
    const given = Object.fromEntries(Object.entries(values).filter(([name]) => used.has(name)))
    await calls.update(`update ${expression}`, key, expression, {
      ReturnValues: 'NONE',
      ...(used.size > 0 ? { ExpressionAttributeValues: given } : {}),
    })
  }
  await calls.update('update beyond 400 KB', key, 'SET a = :big', {
    ExpressionAttributeValues: { ':big': { S: 'x'.repeat(409_600) } },
  })
}
