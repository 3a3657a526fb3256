import {
  checkedCommit,
  checkedManifest,
  checkedProgress,
  type LargeItem,
  type StateLimits,
} from '../../lib/state/commit-rules.ts'
import type { KeyCommit, StateValue } from '../../lib/state/state-store.ts'

const limits: StateLimits = { stage: 'by-hotel' }

function commitOf(states: { [name: string]: StateValue }, changes: Partial<KeyCommit> = {}): KeyCommit {
  return {
    key: 'h1',
    readPosition: 1,
    item: { position: 2, states, expiresAtSeconds: undefined },
    entries: [],
    ...changes,
  }
}

const entry = (name: string, value: StateValue = 1) => ({ state: 'rooms', entry: name, value })
const removed = { state: 'rooms', entry: '2', value: undefined }
const text = (bytes: number): string => 'x'.repeat(bytes)
const thrownBy = (call: () => unknown): { code: string; message: string; name: string } => {
  try {
    call()
  } catch (error) {
    return error as never
  }
  throw new Error('nothing was thrown')
}

describe('a commit', () => {
  test('is given back as it will be read', () => {
    const commit = commitOf({ z: -0, a: { d: 1, c: 2 } }, { entries: [entry('1', [-0]), removed] })
    const checked = checkedCommit(commit, limits)
    expect(JSON.stringify(checked.item.states)).toBe('{"a":{"c":2,"d":1},"z":0}')
    expect(checked.entries).toEqual([entry('1', [0]), removed])
    expect(checked.item.states.a).not.toBe(commit.item.states.a)
  })

  test.each<[string, () => unknown, string]>([
    [
      'in a state',
      () => checkedCommit(commitOf({ seen: { first: new Date(0) } as never }), limits),
      'stage "by-hotel", key "h1": the state seen.first is a Date',
    ],
    [
      'in an entry',
      () => checkedCommit(commitOf({}, { entries: [entry('12', [Number.NaN])] }), limits),
      'stage "by-hotel", key "h1": the state rooms["12"][0] is NaN',
    ],
    [
      'in what the runner keeps of a key',
      () => checkedCommit({ ...commitOf({}), item: { ...commitOf({}).item, own: { at: Number.NaN } } }, limits),
      'stage "by-hotel", key "h1": the runner\'s own attribute.at is NaN',
    ],
    [
      'in the manifest',
      () => checkedManifest({ since: new Date(0) as never }, limits),
      'stage "by-hotel": the manifest.since is a Date',
    ],
    [
      'in progress',
      () => checkedProgress('shard-1', { read: new Map() as never }, limits),
      'stage "by-hotel": the progress of partition "shard-1".read is a Map',
    ],
  ])('what cannot be kept %s is refused by stage, key and state', (_, call, message) => {
    expect(thrownBy(call)).toMatchObject({ code: 'unsupported-value', message: expect.stringContaining(message) })
  })

  test.each(['', '__proto__', '\ud800'])('a state that is named %j is refused', (name) => {
    const states = JSON.parse(`{${JSON.stringify(name)}:1}`)
    expect(thrownBy(() => checkedCommit(commitOf(states), limits)).code).toBe('unsupported-value')
  })

  test.each([
    ['stays where it was', 2, 2],
    ['goes back', 3, 2],
    ['is below zero', undefined, -1],
    ['is not exact', undefined, 2 ** 53],
  ])('a position that %s is a bug of ours', (_, readPosition, position) => {
    const commit = { ...commitOf({}), readPosition, item: { position, states: {}, expiresAtSeconds: undefined } }
    expect(thrownBy(() => checkedCommit(commit, limits)).code).toBe('invariant')
  })

  test('an entry that is named twice is a bug of ours', () => {
    expect(thrownBy(() => checkedCommit(commitOf({}, { entries: [entry('a'), entry('a')] }), limits)).code).toBe(
      'invariant',
    )
  })
})

describe('the size of an item', () => {
  test('near the limit is an error that names stage, key and the largest state', () => {
    const states = { small: 1, flights: text(300_000), other: text(90_000) }
    const error = thrownBy(() => checkedCommit(commitOf(states), limits))
    expect(error).toMatchObject({ name: 'TerminalError', code: 'state-too-large' })
    expect(error.message).toMatch(
      /^stage "by-hotel", key "h1": the state flights is the largest in an item of 390\d{3} bytes, where 389120 are allowed: keep less/,
    )
  })

  test('counts entries by themselves', () => {
    const entries = [entry('1', text(300_000)), entry('2', text(300_000))]
    expect(() => checkedCommit(commitOf({ a: text(300_000) }, { entries }), limits)).not.toThrow()
    const error = thrownBy(() => checkedCommit(commitOf({}, { entries: [entry('1', text(390_000))] }), limits))
    expect(error).toMatchObject({ code: 'state-too-large', message: expect.stringContaining('the state rooms') })
  })

  test("counts the runner's own attributes, of the key and of entries", () => {
    const own = text(200_000)
    const { item } = commitOf({ a: text(190_000) })
    const changes = [{ item: { ...item, own } }, { entries: [{ ...entry('1', text(190_000)), own }] }]
    for (const change of changes) {
      expect(thrownBy(() => checkedCommit(commitOf({}, change), limits)).code).toBe('state-too-large')
    }
  })

  test('that redriven records fill is an error that says so, and when the next can be redriven', () => {
    const redrives = Object.fromEntries(
      Array.from({ length: 9_000 }, (_, n) => [`by-hotel/slot-37/${n}/${text(20)}`, n]),
    )
    const { item } = commitOf({ small: 1, other: text(9_000) })
    const error = thrownBy(() => checkedCommit({ ...commitOf({}), item: { ...item, own: { redrives } } }, limits))
    expect(error).toMatchObject({ name: 'TerminalError', code: 'state-too-large' })
    expect(error.message).toMatch(
      /^stage "by-hotel", key "h1": the item would have 4\d{5} bytes, where 389120 are allowed, and 4\d{5} of them name the 9000 redriven records that the key remembers, each for as long as the stage's input is retained: redrive this one again when/,
    )
    const states = { flights: text(385_000) }
    const few = { ...item, states, own: { redrives: { [text(9_000)]: 1 } } }
    expect(thrownBy(() => checkedCommit({ ...commitOf({}), item: few }, limits)).message).toContain('the state flights')
  })

  test('of the manifest is bounded like any other', () => {
    expect(thrownBy(() => checkedManifest(text(390_000), limits))).toMatchObject({
      code: 'state-too-large',
      message: expect.stringContaining('"by-hotel": the item of "manifest"'),
    })
  })

  test('of progress names the partition', () => {
    const error = thrownBy(() => checkedProgress('shard-1', text(390_000), limits))
    expect(error).toMatchObject({
      code: 'state-too-large',
      message: expect.stringContaining('"by-hotel": the item of "shard-1"'),
    })
  })

  test('counts the key, whole where it was cut', () => {
    const key = text(200_000)
    expect(() => checkedCommit(commitOf({ a: text(150_000) }, { key }), limits)).not.toThrow()
    expect(thrownBy(() => checkedCommit(commitOf({ a: text(190_000) }, { key }), limits)).code).toBe('state-too-large')
  })

  test('is told from a threshold on, well before the error, and with it', () => {
    const told: LargeItem[] = []
    const telling = { ...limits, onLargeItem: (item: LargeItem) => told.push(item) }
    checkedCommit(commitOf({ a: text(250_000) }), telling)
    expect(told).toEqual([])
    checkedCommit(commitOf({ a: text(270_000), b: 1 }, { entries: [entry('1', text(280_000))] }), telling)
    expect(() => checkedProgress('shard-1', text(390_000), telling)).toThrow()
    expect(told).toMatchObject([
      { stage: 'by-hotel', key: 'h1', state: 'a' },
      { stage: 'by-hotel', key: 'h1', state: 'rooms' },
      { stage: 'by-hotel', key: 'shard-1', state: undefined },
    ])
    expect(told[0]?.bytes).toBeGreaterThan(270_000)
    expect(told[0]?.bytes).toBeLessThan(270_200)
  })

  test('has limits that can be set', () => {
    const told: LargeItem[] = []
    const narrow = {
      ...limits,
      mostItemBytes: 1_000,
      largeItemBytes: 500,
      onLargeItem: (item: LargeItem) => told.push(item),
    }
    checkedCommit(commitOf({ a: text(600) }), narrow)
    expect(told).toHaveLength(1)
    expect(thrownBy(() => checkedCommit(commitOf({ a: text(1_000) }), narrow)).code).toBe('state-too-large')
  })
})

describe('the size of a commit', () => {
  const many = (count: number, bytes = 1) => Array.from({ length: count }, (_, i) => entry(String(i), text(bytes)))

  test('is a key item and 99 entries at most', () => {
    expect(() => checkedCommit(commitOf({}, { entries: many(99) }), limits)).not.toThrow()
    const error = thrownBy(() => checkedCommit(commitOf({}, { entries: many(100) }), limits))
    expect(error).toMatchObject({ name: 'TerminalError', code: 'commit-too-large' })
    expect(error.message).toMatch(/^stage "by-hotel", key "h1": the state rooms takes part in a commit of 101 items/)
  })

  test('is 4 MB at most', () => {
    expect(() => checkedCommit(commitOf({}, { entries: many(11, 380_000) }), limits)).not.toThrow()
    expect(thrownBy(() => checkedCommit(commitOf({}, { entries: many(12, 380_000) }), limits)).code).toBe(
      'commit-too-large',
    )
  })
})
