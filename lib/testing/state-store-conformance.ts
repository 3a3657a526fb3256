/**
 * The rules of `lib/state/state-store.ts` as checks that any state store can be held to, under any test runner.
 *
 * Every check makes its own store and sees it through the port only. A check throws a {@link StateStoreConformanceError}
 * that names the rule.
 */
import { compareUtf8 } from '../state/key-encoding.ts'
import type { DueEntry, EntryName, KeyCommit, KeyItem, StateStore, StateValue } from '../state/state-store.ts'
import type { ConformanceCheck } from './sink-conformance.ts'
import { demand, demandEqual, open, show } from './state-store-demands.ts'
import { checkDueEntries, checkDueKeys, checkDueOrder, checkDuePages } from './state-store-due-checks.ts'
import { awkward, refused, values } from './state-store-samples.ts'

export { StateStoreConformanceError } from './state-store-demands.ts'

type Check = (world: StateStoreUnderTest) => Promise<void>

/** A fresh store with an empty table behind it. Its clock must not wait. */
export interface StateStoreUnderTest {
  readonly store: StateStore
  /** Makes the next write take effect and its answer get lost. Without it pass `lostAnswers: false`. */
  loseNextAnswer?(): void
  /** Releases what the store stands on. @default nothing */
  close?(): Promise<void>
}

const itemOf = (position: number, states: KeyItem['states'] = {}): KeyItem => ({
  position,
  states,
  expiresAtSeconds: undefined,
})

type Entries = KeyCommit['entries']

async function write(store: StateStore, key: string, from: number | undefined, item: KeyItem, entries: Entries = []) {
  return store.commit({ key, readPosition: from, item, entries }, open())
}

async function mustWrite(...args: Parameters<typeof write>): Promise<void> {
  const outcome = await write(...args)
  demand(outcome.status === 'committed', `rule 2: a commit at the position that was read was answered ${show(outcome)}`)
}

const read = async (store: StateStore, key: string) => (await store.readKeys([key], open())).get(key)
const readEntry = async (store: StateStore, name: EntryName) => (await store.readEntries([name], open()))[0]

const checkReads: Check = async ({ store }) => {
  demandEqual(await store.readKeys([], open()), new Map(), 'rule 1: what no keys hold')
  demandEqual(await store.readEntries([], open()), [], 'rule 1: what no entries hold')
  const keys = Array.from({ length: 230 }, (_, i) => `key ${i}`)
  for (const [i, key] of keys.entries()) {
    if (i % 3 !== 0) await mustWrite(store, key, undefined, itemOf(i, { i }), [{ state: 's', entry: key, value: i }])
  }
  const items = await store.readKeys(keys, open())
  demand(items.size === keys.filter((_, i) => i % 3 !== 0).length, `rule 1: of 153 keys ${items.size} were read`)
  for (const [i, key] of keys.entries()) {
    const expected = i % 3 === 0 ? undefined : itemOf(i, { i })
    demandEqual(items.get(key), expected, `rule 1: of many, ${key}`)
  }
  const names = keys.map((key) => ({ key, state: 's', entry: key })).reverse()
  const entries = await store.readEntries(names, open())
  const values = entries.map((entry) => entry?.value)
  const expected = keys.map((_, i) => (i % 3 === 0 ? undefined : i)).reverse()
  demandEqual(values, expected, 'rule 1: entries in the order asked for')
}

const checkConditions: Check = async ({ store }) => {
  const first = itemOf(5, { n: 1 })
  const second = itemOf(9, { n: 2 })
  demandEqual(
    await write(store, 'k', 4, first),
    { status: 'conflict', found: undefined },
    'rule 2: a commit on nothing',
  )
  await mustWrite(store, 'k', undefined, first)
  const found = { status: 'conflict', found: first }
  demandEqual(await write(store, 'k', undefined, second), found, 'rule 2: a commit on a key that is there')
  demandEqual(await write(store, 'k', 4, second), found, 'rule 2: a commit on an older position')
  demandEqual(await write(store, 'k', 6, second), found, 'rule 2: a commit on a later position')
  demandEqual(await read(store, 'k'), first, 'rule 2: the item after lost commits')
  await mustWrite(store, 'k', 5, second)
  demandEqual(await read(store, 'k'), second, 'rule 1: the item after a commit')
  demandEqual(
    await write(store, 'k', 5, second),
    { status: 'conflict', found: second },
    'rule 2: a commit that is repeated',
  )
  await mustWrite(store, 'other', undefined, itemOf(0))
}

const checkAtomicity: Check = async ({ store }) => {
  const name = (entry: string): EntryName => ({ key: 'k', state: 's', entry })
  await mustWrite(store, 'k', undefined, itemOf(1), [
    { state: 's', entry: 'a', value: 1 },
    { state: 's', entry: 'b', value: 1 },
  ])
  const changes: Entries = [
    { state: 's', entry: 'a', value: 2 },
    { state: 's', entry: 'b', value: undefined },
    { state: 's', entry: 'c', value: 2 },
  ]
  const lost = await write(store, 'k', undefined, itemOf(2), changes)
  demandEqual(lost, { status: 'conflict', found: itemOf(1) }, 'rule 2: a commit of entries on a key that is there')
  const nothing = await write(store, 'none', 1, itemOf(2), [{ state: 's', entry: 'a', value: 1 }])
  demandEqual(nothing, { status: 'conflict', found: undefined }, 'rule 2: a commit of entries on nothing')
  const kept = await store.readEntries([name('a'), name('b'), name('c')], open())
  demandEqual(
    kept.map((entry) => entry?.value),
    [1, 1, undefined],
    'rule 2: the entries after a lost commit',
  )

  await mustWrite(store, 'k', 1, itemOf(2), changes)
  const [a, b, c] = await store.readEntries([name('a'), name('b'), name('c')], open())
  demandEqual([a?.value, a?.position, c?.value, c?.position], [2, 2, 2, 2], 'rule 2: value and position of entries')
  demandEqual([b?.value, b?.position], [undefined, 2], 'rule 2: value and position of a removed entry')
  const list = await store.listEntries('k', 's', open())
  demandEqual([...list.keys()], ['a', 'c'], 'rule 2: the list, which leaves out tombstones')
}

const checkRace: Check = async ({ store }) => {
  await mustWrite(store, 'k', undefined, itemOf(1))
  const racers = Array.from({ length: 8 }, (_, i) => i)
  const entriesOf = (racer: number): Entries => (racer % 2 === 0 ? [] : [{ state: 's', entry: 'e', value: racer }])
  const outcomes = await Promise.all(
    racers.map((racer) => write(store, 'k', 1, itemOf(racer + 2, { racer }), entriesOf(racer))),
  )
  const winners = racers.filter((racer) => outcomes[racer]?.status === 'committed')
  demand(winners.length === 1, `rule 2: of eight commits on one position ${winners.length} took place`)
  const [winner = 0] = winners
  const won = itemOf(winner + 2, { racer: winner })
  for (const racer of racers) {
    if (racer === winner) continue
    demandEqual(outcomes[racer], { status: 'conflict', found: won }, 'rule 2: what a loser of a race is given')
  }
  const entry = await readEntry(store, { key: 'k', state: 's', entry: 'e' })
  demandEqual(entry?.value, winner % 2 === 0 ? undefined : winner, 'rule 2: the entry after a race')
}

const checkProgress: Check = async ({ store }) => {
  const put = (version: number, value: StateValue) => store.writeProgress('p', version, value, open())
  demandEqual(await store.readProgress('p', open()), undefined, 'rule 3: progress before any')
  demandEqual(await put(1, 'x'), false, 'rule 3: a write on progress that is not there')
  demandEqual(await put(0, { completed: 1 }), true, 'rule 3: the first write')
  demandEqual(await put(0, 'x'), false, 'rule 3: a second first write')
  demandEqual(await put(1, { completed: 2 }), true, 'rule 3: a write at the version that was read')
  demandEqual(await put(1, 'x'), false, 'rule 3: a write at an older version')
  demandEqual(await put(3, 'x'), false, 'rule 3: a write at a later version')
  demandEqual(await store.readProgress('p', open()), { version: 2, value: { completed: 2 } }, 'rule 3: the progress')
  const raced = await Promise.all([1, 2, 3, 4].map((n) => put(2, n)))
  demandEqual(raced.filter(Boolean).length, 1, 'rule 3: the number of winners of a race')
  const winner = raced.indexOf(true) + 1
  demandEqual(await store.readProgress('p', open()), { version: 3, value: winner }, 'rule 3: progress after a race')
  demandEqual(await store.readProgress('P', open()), undefined, 'rule 3: the progress of another partition')
}

const checkLostAnswers: Check = async ({ store, loseNextAnswer }) => {
  demand(loseNextAnswer !== undefined, 'the store under test has no `loseNextAnswer`: pass { lostAnswers: false }')
  const rejected = async (call: Promise<unknown>, what: string): Promise<void> => {
    const error = await call.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    demand(error !== undefined, `rule 4: ${what} whose answer was lost was answered all the same`)
  }
  loseNextAnswer()
  await rejected(write(store, 'k', undefined, itemOf(3, { n: 1 })), 'a commit')
  demandEqual(await read(store, 'k'), itemOf(3, { n: 1 }), 'rule 4: the item whose answer was lost')
  loseNextAnswer()
  await rejected(write(store, 'k', 3, itemOf(4), [{ state: 's', entry: 'e', value: 1 }]), 'a commit of an entry')
  const again = await write(store, 'k', 3, itemOf(4), [{ state: 's', entry: 'e', value: 1 }])
  demandEqual(again, { status: 'conflict', found: itemOf(4) }, 'rule 4: the commit that is tried again')
  loseNextAnswer()
  await rejected(store.writeProgress('p', 0, 1, open()), 'a write of progress')
  demandEqual(
    await store.readProgress('p', open()),
    { version: 1, value: 1 },
    'rule 4: the progress that was not answered',
  )
}

const checkValues: Check = async ({ store }) => {
  const states = Object.fromEntries(values.map((value, i) => [`state ${String(i).padStart(2, '0')}`, value]))
  const entries = values.map((value, i) => ({ state: 's', entry: String(i), value }))
  const item = { position: 1, states, expiresAtSeconds: 4_102_444_800 }
  await mustWrite(store, 'k', undefined, item, entries)
  demandEqual(await read(store, 'k'), item, 'rule 5: what is read of states')
  for (const [i, value] of values.entries()) {
    const entry = await readEntry(store, { key: 'k', state: 's', entry: String(i) })
    demandEqual(entry?.value, value, 'rule 5: what is read of an entry')
  }
  await store.writeProgress('p', 0, [...values], open())
  demandEqual((await store.readProgress('p', open()))?.value, values, 'rule 5: what is read of progress')

  await mustWrite(store, 'order', undefined, itemOf(1, { z: { b: 1, a: { d: 1, c: 1 } }, y: -0 }))
  const order = (await read(store, 'order'))?.states
  demand(
    JSON.stringify(order) === '{"y":0,"z":{"a":{"c":1,"d":1},"b":1}}',
    `rule 5: names come in the order ${show(order)}`,
  )
  demand(Object.is(order?.y, 0), 'rule 5: -0 is not read as 0')
}

const checkOwn: Check = async ({ store }) => {
  const name = (entry: string): EntryName => ({ key: 'k', state: 's', entry })
  const own = { list: [...values], position: 1, states: 2, value: 3 }
  await mustWrite(store, 'k', undefined, { ...itemOf(1, { position: 4, own: 5 }), own }, [
    { state: 's', entry: 'a', value: 1, own },
    { state: 's', entry: 'removed', value: undefined, own },
    { state: 's', entry: 'none', value: 1, own: undefined },
  ])
  const item = await read(store, 'k')
  demandEqual(item, { ...itemOf(1, { own: 5, position: 4 }), own }, 'rule 5: what is read of an item with `own`')
  const entries = await store.readEntries(['a', 'removed', 'none'].map(name), open())
  demandEqual(
    entries.map((entry) => entry?.own),
    [own, own, undefined],
    'rule 5: what is read of the `own` of entries',
  )
  demand(!('own' in (entries[2] ?? {})), 'rule 5: an entry without `own` comes back with one')
  const listed = await store.listEntries('k', 's', open())
  demandEqual(listed.get('a')?.own, own, 'rule 5: what is listed of the `own` of an entry')
  const lost = await write(store, 'k', undefined, itemOf(2))
  demandEqual(lost.status === 'conflict' && lost.found?.own, own, 'rule 2: the `own` that a lost commit is given')
  await mustWrite(store, 'k', 1, itemOf(2))
  demand(!('own' in ((await read(store, 'k')) ?? {})), 'rule 5: an item without `own` comes back with one')
}

const checkManifest: Check = async ({ store }) => {
  demandEqual(await store.readManifest(open()), undefined, 'rule 8: the manifest before any')
  demandEqual(await store.replaceManifest(1, 2, open()), false, 'rule 8: over a manifest where there is none')
  const manifest = { format: 1, states: [...values] }
  const raced = [manifest, manifest, manifest].map((value) => store.writeManifest(value, open()))
  demandEqual((await Promise.all(raced)).filter(Boolean).length, 1, 'rule 8: how many wrote the manifest first')
  demandEqual(await store.writeManifest('another', open()), false, 'rule 8: a second manifest')
  demandEqual(await store.readManifest(open()), manifest, 'rule 8: the manifest')
  const next = { ...manifest, format: 2 }
  demandEqual(await store.replaceManifest(next, 'another', open()), false, 'rule 8: over a manifest that is not there')
  demandEqual(await store.readManifest(open()), manifest, 'rule 8: the manifest that was not replaced')
  const racedOver = [next, next, next].map((value) => store.replaceManifest(manifest, value, open()))
  demandEqual((await Promise.all(racedOver)).filter(Boolean).length, 1, 'rule 8: how many replaced the manifest')
  demandEqual(await store.readManifest(open()), next, 'rule 8: the manifest that replaced another')
  demandEqual(await store.replaceManifest(next, manifest, open()), true, 'rule 8: back to the manifest before')
  await demandTerminal(store.writeManifest(Number.NaN, open()), 'the manifest NaN')
  await demandTerminal(store.replaceManifest(manifest, Number.NaN, open()), 'the manifest NaN')
  demandEqual(await store.readProgress('', open()), undefined, 'rule 8: progress beside a manifest')
  demandEqual(await store.readProgress('manifest', open()), undefined, 'rule 8: progress beside a manifest')
  demandEqual(await read(store, ''), undefined, 'rule 8: an item beside a manifest')
}

const checkOwnership: Check = async ({ store }) => {
  const list: StateValue[] = [1]
  const bytes = Uint8Array.of(1)
  const states = { list, bytes }
  const entries: Entries = [{ state: 's', entry: 'e', value: list, own: list }]
  await mustWrite(store, 'k', undefined, { ...itemOf(1, states), own: list }, entries)
  await store.writeProgress('p', 0, list, open())
  await store.writeManifest(list, open())
  list.push(2)
  bytes[0] = 2
  const expected = { ...itemOf(1, { list: [1], bytes: Uint8Array.of(1) }), own: [1] }
  const name = { key: 'k', state: 's', entry: 'e' }
  for (const whose of ['written', 'read before']) {
    const item = await read(store, 'k')
    const entry = await readEntry(store, name)
    const progress = await store.readProgress('p', open())
    const manifest = await store.readManifest(open())
    demandEqual(item, expected, `rule 5: the item, after the value that was ${whose} was changed,`)
    demandEqual(
      [entry?.value, entry?.own, progress?.value, manifest],
      [[1], [1], [1], [1]],
      `rule 5: what is kept, after the value ${whose} was changed,`,
    )
    const lost = await write(store, 'k', undefined, itemOf(2))
    for (const found of [item, lost.status === 'conflict' ? lost.found : undefined]) {
      const foundStates = found?.states as unknown as typeof states
      foundStates.list.push(3)
      foundStates.bytes[0] = 3
    }
    const shared = [item?.own, entry?.value, entry?.own, progress?.value, manifest] as StateValue[][]
    for (const value of shared) value.push(3)
  }
}

async function demandTerminal(call: Promise<unknown>, what: string): Promise<void> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown as Error,
  )
  demand(
    error?.name === 'TerminalError',
    `rule 5: ${what} was not refused by a TerminalError but ${error?.name ?? 'taken'}`,
  )
}

const checkRefusals: Check = async ({ store }) => {
  for (const value of refused as readonly StateValue[]) {
    const what = typeof value === 'string' ? `text of ${value.length} characters` : String(show(value))
    await demandTerminal(write(store, 'k', undefined, itemOf(1, { value })), `the state ${what}`)
    if (value === undefined) continue
    const entries: Entries = [{ state: 's', entry: 'e', value }]
    await demandTerminal(write(store, 'k', undefined, itemOf(1), entries), `the entry ${what}`)
    await demandTerminal(write(store, 'k', undefined, { ...itemOf(1), own: value }), `the item's own ${what}`)
    const owning: Entries = [{ state: 's', entry: 'e', value: 1, own: value }]
    await demandTerminal(write(store, 'k', undefined, itemOf(1), owning), `the entry's own ${what}`)
    await demandTerminal(store.writeProgress('p', 0, value, open()), `the progress ${what}`)
  }
  const many = Array.from({ length: 100 }, (_, i) => ({ state: 's', entry: String(i), value: i }))
  await demandTerminal(write(store, 'k', undefined, itemOf(1), many), 'a commit of 101 items')
  const large = Array.from({ length: 12 }, (_, i) => ({ state: 's', entry: String(i), value: 'x'.repeat(360_000) }))
  await demandTerminal(write(store, 'k', undefined, itemOf(1), large), 'a commit of more than 4 MB')
  await demandTerminal(write(store, '\ud800', undefined, itemOf(1)), 'a key with half a surrogate pair')
  demandEqual(await read(store, 'k'), undefined, 'rule 5: the item after refused commits')
  demandEqual(await store.readProgress('p', open()), undefined, 'rule 5: progress after refused writes')
  await mustWrite(store, 'k', undefined, itemOf(1, { text: 'x'.repeat(370_000) }), many.slice(1))
}

const checkKeys: Check = async ({ store }) => {
  for (const [i, key] of awkward.entries()) {
    await mustWrite(store, key, undefined, itemOf(i, { i }), [{ state: 's', entry: '1', value: i }])
    await store.writeProgress(key, 0, i, open())
  }
  const items = await store.readKeys(awkward, open())
  for (const [i, key] of awkward.entries()) {
    const what = show(key.slice(0, 30))
    demandEqual(items.get(key), itemOf(i, { i }), `rule 5: the item of the key ${what}`)
    const list = await store.listEntries(key, 's', open())
    demandEqual(
      [...list].map(([entry, { value }]) => [entry, value]),
      [['1', i]],
      `rule 5: the entries of the key ${what}`,
    )
    demandEqual((await store.readProgress(key, open()))?.value, i, `rule 5: the progress of the partition ${what}`)
  }
}

const checkEntryNames: Check = async ({ store }) => {
  const states = ['s', 's#', 's#1', '%', 'S']
  let position = 0
  for (const [i, state] of states.entries()) {
    const entries = awkward.map((entry, j) => ({ state, entry, value: i * 1_000 + j }))
    await mustWrite(store, 'k', position === 0 ? undefined : position, itemOf(position + 1), entries)
    position += 1
  }
  const order = [...awkward].sort(compareUtf8)
  for (const [i, state] of states.entries()) {
    const list = await store.listEntries('k', state, open())
    demandEqual([...list.keys()], order, `rule 5: the names of the entries of the state ${state}`)
    for (const [j, entry] of awkward.entries()) {
      demandEqual(list.get(entry)?.value, i * 1_000 + j, `rule 5: the entry ${show(entry.slice(0, 30))} of ${state}`)
    }
  }
  demandEqual(
    (await store.listEntries('k', 'none', open())).size,
    0,
    'rule 5: how many entries a state without any has',
  )
  demandEqual((await store.listEntries('none', 's', open())).size, 0, 'rule 5: how many entries a key without any has')
}

const checkExpiry: Check = async ({ store }) => {
  const expired = { ...itemOf(1, { n: 1 }), expiresAtSeconds: 1 }
  await mustWrite(store, 'k', undefined, expired, [{ state: 's', entry: 'e', value: 1, expiresAtSeconds: 1 }])
  const found = await read(store, 'k')
  if (found !== undefined) demandEqual(found, expired, 'rule 6: an expired item that is still there')
  // The condition must see what the read saw, or the key would be blocked until TTL.
  const entries: Entries = [{ state: 's', entry: 'f', value: 1, expiresAtSeconds: 4_102_444_800 }]
  await mustWrite(store, 'k', found?.position, { ...itemOf(2), expiresAtSeconds: 4_102_444_800 }, entries)
  demandEqual((await read(store, 'k'))?.expiresAtSeconds, 4_102_444_800, 'rule 6: the expiry of an item')
  const entry = await readEntry(store, { key: 'k', state: 's', entry: 'f' })
  demandEqual(entry?.expiresAtSeconds, 4_102_444_800, 'rule 6: the expiry of an entry')
}

const checkAbort: Check = async ({ store }) => {
  const aborted = AbortSignal.abort()
  const due: DueEntry = { slot: 1, domain: 'event-time', timeMs: 1, key: 'k' }
  const kept = { ...due, key: 'kept' }
  await store.putDue([kept], open())
  const calls: Record<string, () => Promise<unknown>> = {
    readProgress: () => store.readProgress('p', aborted),
    writeProgress: () => store.writeProgress('p', 0, 1, aborted),
    readKeys: () => store.readKeys(['k'], aborted),
    readEntries: () => store.readEntries([{ key: 'k', state: 's', entry: 'e' }], aborted),
    listEntries: () => store.listEntries('k', 's', aborted),
    commit: () => store.commit({ key: 'k', readPosition: undefined, item: itemOf(1), entries: [] }, aborted),
    readManifest: () => store.readManifest(aborted),
    writeManifest: () => store.writeManifest(1, aborted),
    replaceManifest: () => store.replaceManifest(1, 2, aborted),
    putDue: () => store.putDue([due], aborted),
    readDue: () => store.readDue(1, 'event-time', 1, { limit: 1 }, aborted),
    deleteDue: () => store.deleteDue([kept], aborted),
  }
  for (const [name, call] of Object.entries(calls)) {
    const answered = await call().then(
      () => true,
      () => false,
    )
    demand(!answered, `rule 7: ${name} went on after the abort`)
  }
  demandEqual(await read(store, 'k'), undefined, 'rule 7: the item after an aborted commit')
  demandEqual(await store.readProgress('p', open()), undefined, 'rule 7: progress after an aborted write')
  demandEqual(await store.readManifest(open()), undefined, 'rule 7: the manifest after an aborted write')
  const { entries } = await store.readDue(1, 'event-time', 1, { limit: 9 }, open())
  demandEqual(entries, [kept], 'rule 7: the due entries after an aborted put and an aborted deletion')
}

/**
 * The checks for one store. `make` is called once per check and gives a store with an empty table. `lostAnswers: false`
 * leaves out the check that needs an answer to get lost.
 *
 * @example
 * for (const { name, run } of stateStoreConformance('memory', { make: makeMemoryWorld })) test(name, run)
 */
export function stateStoreConformance(
  name: string,
  { make, lostAnswers = true }: { make(): Promise<StateStoreUnderTest>; lostAnswers?: boolean },
): readonly ConformanceCheck[] {
  const checks: [rule: string, check: Check][] = [
    ['reads see what was written, in any number', checkReads],
    ['a commit takes place only at the position that was read', checkConditions],
    ['a commit is atomic over the key item and its entries', checkAtomicity],
    ['one of several commits at once takes place', checkRace],
    ['progress is written only at the version that was read', checkProgress],
    ['values come back as they were written', checkValues],
    ["the runner's own attributes come back beside the values", checkOwn],
    ['nothing is shared with the caller', checkOwnership],
    ['what would not come back is refused', checkRefusals],
    ['keys of any kind are told apart', checkKeys],
    ['entries of any name are told apart and listed in order', checkEntryNames],
    ['conditions see expired items as reads do', checkExpiry],
    ['after an abort nothing starts', checkAbort],
    ['the manifest is written once', checkManifest],
    ['due entries are put, read and deleted by slot and domain', checkDueEntries],
    ['due entries come in the order of their times, also before 1970', checkDueOrder],
    ['due entries are read page by page, with the time of the next', checkDuePages],
    ['due entries of keys of any kind are told apart', checkDueKeys],
  ]
  if (lostAnswers) checks.push(['a call whose answer is lost rejects, and may have taken effect', checkLostAnswers])
  return checks.map(([rule, check]) => ({
    name: `${name}: ${rule}`,
    async run() {
      const world = await make()
      try {
        await check(world)
      } finally {
        await world.close?.()
      }
    },
  }))
}
