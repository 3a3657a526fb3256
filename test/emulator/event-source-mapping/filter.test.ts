import { ConfigurationError } from '../../../lib/core/errors.ts'
import { compilePattern } from '../../../lib/emulator/event-source-mapping/filter-pattern.ts'
import { parseJsonText } from '../../../lib/emulator/event-source-mapping/json-text.ts'
import { MappingWorld, s0 } from './mapping-world.ts'

const matches = (pattern: string, event: string) => compilePattern(pattern)(parseJsonText(event))

describe('patterns (1.8)', () => {
  test.each([
    ['equal text', '{"a":["x","y"]}', '{"a":"y"}', '{"a":"Y"}'],
    ['fields are AND-ed', '{"a":["x"],"b":["y"]}', '{"a":"x","b":"y"}', '{"a":"x","b":"z"}'],
    ['nested fields', '{"a":{"b":["x"]}}', '{"a":{"b":"x"}}', '{"b":"x"}'],
    ['null', '{"a":[null]}', '{"a":null}', '{}'],
    ['the empty string', '{"a":[""]}', '{"a":""}', '{"a":null}'],
    ['true', '{"a":[true]}', '{"a":true}', '{"a":"true"}'],
    ['numbers by their text', '{"a":[300]}', '{"a":300}', '{"a":300.0}'],
    ['a number is not a string', '{"a":[300]}', '{"a":300}', '{"a":"300"}'],
    ['numbers beyond 2^53', '{"a":[1524831183200260097]}', '{"a":1524831183200260097}', '{"a":1524831183200260096}'],
    ['equals-ignore-case', '{"a":[{"equals-ignore-case":"Oslo"}]}', '{"a":"OSLO"}', '{"a":"Oslo "}'],
    ['prefix', '{"a":[{"prefix":"os"}]}', '{"a":"oslo"}', '{"a":"Oslo"}'],
    ['prefix ignoring case', '{"a":[{"prefix":{"equals-ignore-case":"OS"}}]}', '{"a":"oslo"}', '{"a":"bergen"}'],
    ['suffix', '{"a":[{"suffix":".png"}]}', '{"a":"x.png"}', '{"a":"x.jpg"}'],
    ['anything-but a value', '{"a":[{"anything-but":"x"}]}', '{"a":"y"}', '{"a":"x"}'],
    ['anything-but needs the field', '{"a":[{"anything-but":["x",5]}]}', '{"a":6}', '{}'],
    ['anything-but a list', '{"a":[{"anything-but":["x",5]}]}', '{"a":"5"}', '{"a":5}'],
    ['anything-but a prefix', '{"a":[{"anything-but":{"prefix":"x"}}]}', '{"a":"yx"}', '{"a":"xy"}'],
    ['numeric =', '{"a":[{"numeric":["=",300]}]}', '{"a":300.0}', '{"a":301}'],
    ['numeric range', '{"a":[{"numeric":[">",0,"<=",5]}]}', '{"a":5}', '{"a":0}'],
    ['numeric wants a number', '{"a":[{"numeric":[">",0]}]}', '{"a":1}', '{"a":"1"}'],
    ['exists', '{"a":[{"exists":true}]}', '{"a":null}', '{"b":1}'],
    ['exists is for leaves', '{"a":[{"exists":true}]}', '{"a":1}', '{"a":{"b":1}}'],
    ['not exists', '{"a":{"b":[{"exists":false}]}}', '{}', '{"a":{"b":1}}'],
    ['a list matches by any element', '{"a":["x"]}', '{"a":["y","x"]}', '{"a":["y"]}'],
    [
      'a list of objects, within one element',
      '{"a":{"b":[1],"c":[2]}}',
      '{"a":[{"b":1,"c":2}]}',
      '{"a":[{"b":1},{"c":2}]}',
    ],
    ['$or', '{"$or":[{"a":["x"]},{"b":[{"numeric":[">",1]}]}]}', '{"b":2}', '{"a":"y","b":1}'],
    ['$or beside a field', '{"c":[1],"$or":[{"a":["x"]},{"b":["y"]}]}', '{"c":1,"b":"y"}', '{"b":"y"}'],
    ['__proto__ is a field like any other', '{"__proto__":["x"]}', '{"__proto__":"x"}', '{}'],
    ['inherited names are no fields', '{"toString":[{"exists":false}]}', '{}', '{"toString":1}'],
  ])('%s', (_, pattern, yes, no) => {
    expect([matches(pattern, yes), matches(pattern, no)]).toEqual([true, false])
  })

  test.each([
    'not json',
    '[]',
    '"data"',
    '{}',
    '{"data":{}}',
    '{"data":{"a":"x"}}',
    '{"data":{"a":[]}}',
    '{"data":{"a":[["x"]]}}',
    '{"data":{"a":[{"wildcard":"*"}]}}',
    '{"data":{"a":[{"prefix":5}]}}',
    '{"data":{"a":[{"prefix":"x","suffix":"y"}]}}',
    '{"data":{"a":[{"numeric":[">"]}]}}',
    '{"data":{"a":[{"numeric":["~",5]}]}}',
    '{"data":{"a":[{"exists":"yes"}]}}',
    '{"data":{"$or":["x"]}}',
    '{"data":["plain text"]}',
    '{"$or":[{"data":["plain text"]},{"partitionKey":["k"]}]}',
  ])('[D] %s is refused when the mapping is created', (pattern) => {
    const create = () => new MappingWorld({ filterCriteria: { filters: [{ pattern }] } })
    expect(create).toThrow(ConfigurationError)
    expect(create).toThrow('filter pattern')
  })
})

describe('filters through the mapping (1.8)', () => {
  const deliveredBy = async (patterns: object[], put: (world: MappingWorld) => void) => {
    const filters = patterns.map((pattern) => ({ pattern: JSON.stringify(pattern) }))
    const world = new MappingWorld({ filterCriteria: { filters } })
    put(world)
    await world.run(1_000)
    await world.stop()
    return world
  }

  test('[R] the function still gets the original base64', async () => {
    const data = Buffer.from('{ "v" : 1 }')
    const world = await deliveredBy([{ data: { v: [1] } }], ({ stream }) => stream.put(s0, 1, { data }))
    expect(world.invoker.events[0]).toMatchObject({ Records: [{ kinesis: { data: data.toString('base64') } }] })
  })

  test('[D] what is not JSON is dropped by a filter on data, and judged by one on metadata alone', async () => {
    const put = ({ stream }: MappingWorld) => {
      stream.put(s0, 1, { partitionKey: 'a', data: Buffer.from('not json') })
      stream.put(s0, 2, { partitionKey: 'a', data: new Uint8Array([0xff]) })
      stream.put(s0, 3, { partitionKey: 'b', json: {} })
    }
    const onData = await deliveredBy([{ data: { v: [{ exists: false }] } }], put)
    expect(onData.invoker.batches).toEqual(['3'])
    const onMetadata = await deliveredBy([{ partitionKey: ['a'] }], put)
    expect(onMetadata.invoker.batches).toEqual(['1 2'])
  })

  test('several filters are OR-ed, and what they drop is counted and passed', async () => {
    const world = await deliveredBy([{ data: { v: [1] } }, { data: { v: [3] } }], ({ stream }) => {
      for (const v of [1, 2, 3, 4]) stream.put(s0, v, { json: { v } })
    })
    expect(world.invoker.batches).toEqual(['1 3'])
    expect(world.mapping.status().counters).toMatchObject({ polledEvents: 4, filteredOutEvents: 2 })
    expect(world.checkpoints.at(s0)).toBe('4')
  })

  test('a dropped record behind an unfinished one does not move the checkpoint past it', async () => {
    const filters = [{ pattern: '{"data":{"v":[1]}}' }]
    const world = new MappingWorld({ filterCriteria: { filters } })
    world.invoker.answer = () => ({ kind: 'function-error', reason: 'boom' })
    world.stream.put(s0, 1, { json: { v: 1 } })
    world.stream.put(s0, 2, { json: { v: 2 } })
    await world.run(5_000)
    expect(world.checkpoints.at(s0)).toBeUndefined()
    await world.stop()
  })
})
