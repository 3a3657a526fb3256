/** What a step brought to our schema version, or dropped unread, is taken back with it. */
import { KeyDraft } from '../../lib/state/key-draft.ts'
import { packedState, type StateDeclaration, valueState } from '../../lib/state/states.ts'

const noTime = { eventTimeMs: 0, arrivalTimeMs: 0 }
const draftOf = (declaration: unknown, value: string) =>
  new KeyDraft(
    'a',
    { position: 1, states: { s: value }, expiresAtSeconds: undefined },
    new Map([['s', declaration as StateDeclaration]]),
  )
const stored = (draft: KeyDraft) => draft.commit(0, 0).item

test('a value that a step brought to our version, and that was taken back, is written as it was', () => {
  const longer = valueState<string>({ version: 2, upcast: { 1: (old) => `${old} and more` } })
  const draft = draftOf(longer, 'old')
  for (const change of [() => undefined, () => draft.write('s', 'new')]) {
    draft.begin(noTime)
    expect(draft.read('s')).toBe('old and more')
    change()
    draft.rollback()
    expect(stored(draft)).toMatchObject({ states: { s: 'old' } })
    expect(stored(draft).own).toBeUndefined()
  }
  draft.begin(noTime)
  draft.read('s')
  draft.accept(2)
  draft.begin(noTime)
  draft.rollback()
  expect(stored(draft).states).toEqual({ s: 'old and more' })
})

test('a packed value that cannot be read stays as it is stored, however often a step tries', () => {
  const draft = draftOf(unreadable(), 'stored')
  for (const _ of [1, 2]) {
    draft.begin(noTime)
    expect(() => draft.read('s')).toThrow('none of ours')
    draft.accept(draft.position + 1)
    expect(stored(draft).states).toEqual({ s: 'stored' })
  }
})

test('it can be dropped, which is taken back as any change is; behind it there is room for another', () => {
  const draft = draftOf(unreadable(), 'stored')
  draft.begin(noTime)
  draft.drop('s')
  expect(draft.read('s')).toBeUndefined()
  draft.rollback()
  expect(stored(draft).states).toEqual({ s: 'stored' })
  draft.begin(noTime)
  expect(() => draft.read('s')).toThrow('none of ours')
  draft.drop('s')
  draft.write('s', 7)
  draft.accept(2)
  expect(stored(draft).states).toEqual({ s: 'packed 7' })
})

const unreadable = () =>
  packedState<number>({
    encode: (value) => `packed ${value}`,
    decode: () => {
      throw new Error('this is none of ours')
    },
  })
