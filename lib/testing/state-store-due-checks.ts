/** The checks of rule 9 of the state store: due entries. */
import { compareUtf8 } from '../state/key-encoding.ts'
import type { DueEntry, StateStore, TimerDomain } from '../state/state-store.ts'
import { demand, demandEqual, open, show } from './state-store-demands.ts'
import { awkward } from './state-store-samples.ts'

type Check = (world: { readonly store: StateStore }) => Promise<void>

const dueAt = (timeMs: number, key = 'k', slot = 3, domain: TimerDomain = 'event-time'): DueEntry => ({
  slot,
  domain,
  timeMs,
  key,
})

const read = (store: StateStore, untilMs: number, limit: number, after?: DueEntry) =>
  store.readDue(3, 'event-time', untilMs, { limit, after }, open())

const readAll = async (store: StateStore, slot = 3, domain: TimerDomain = 'event-time') =>
  (await store.readDue(slot, domain, Number.POSITIVE_INFINITY, { limit: 10_000 }, open())).entries

export const checkDueEntries: Check = async ({ store }) => {
  await store.putDue([], open())
  await store.deleteDue([], open())
  const nothing = { entries: [], nextMs: undefined, isComplete: true }
  demandEqual(await read(store, 1_000, 10), nothing, 'rule 9: what is due before anything was put')

  const ours = dueAt(5)
  const others = [dueAt(5, 'k', 31), dueAt(5, 'k', 3, 'processing-time'), dueAt(5, 'k', 0)]
  await store.putDue([ours, ...others, ours], open())
  await store.putDue([ours], open())
  demandEqual(await readAll(store), [ours], 'rule 9: an entry that was put three times')
  for (const other of others) {
    const found = await readAll(store, other.slot, other.domain)
    demandEqual(found, [other], `rule 9: what is due in slot ${other.slot}, ${other.domain},`)
  }
  const signed = dueAt(-0)
  await store.putDue([signed], open())
  demand(Object.is((await readAll(store))[0]?.timeMs, 0), 'rule 9: the time -0 is not read as 0')

  await store.deleteDue([dueAt(5, 'none'), dueAt(6), signed, ours, ours], open())
  await store.deleteDue([ours], open())
  demandEqual(await readAll(store), [], 'rule 9: the slot whose entries were deleted')
  for (const other of others) {
    const found = await readAll(store, other.slot, other.domain)
    demandEqual(found, [other], `rule 9: slot ${other.slot}, ${other.domain}, after others were deleted,`)
  }
  demandEqual(await store.readProgress('3', open()), undefined, 'rule 9: progress beside due entries')
  demandEqual((await store.readKeys(['3', 'k'], open())).size, 0, 'rule 9: how many key items are beside due entries')
}

const times = [
  -8_640_000_000_000_000,
  -100_000,
  -99_999,
  -1_000,
  -999,
  -10,
  -9,
  -1,
  0,
  1,
  9,
  10,
  99,
  100,
  1_767_225_600_000,
  8_640_000_000_000_000,
  Number.MAX_SAFE_INTEGER,
]

export const checkDueOrder: Check = async ({ store }) => {
  const keys = ['', '#', 'a', 'ä', '\uffff', '\u{1f600}']
  const expected = times.flatMap((timeMs) => keys.map((key) => dueAt(timeMs, key)))
  await store.putDue([...expected].reverse(), open())
  demandEqual(await readAll(store), expected, 'rule 9: the order of what is due')
  for (const [i, timeMs] of times.entries()) {
    const { entries, nextMs, isComplete } = await read(store, timeMs, 10_000)
    demandEqual(entries, expected.slice(0, (i + 1) * keys.length), `rule 9: what is due up to ${timeMs}`)
    demandEqual(
      [nextMs, isComplete],
      [times[i + 1], true],
      `rule 9: what comes after ${timeMs}, and whether all was read,`,
    )
  }
}

export const checkDuePages: Check = async ({ store }) => {
  const entries = Array.from({ length: 230 }, (_, i) => dueAt(i >> 1, `k${i % 2}`))
  await store.putDue(entries, open())
  demandEqual(await readAll(store), entries, 'rule 9: of 230 entries, what is due')
  const minusInfinity = await read(store, Number.NEGATIVE_INFINITY, 1)
  demandEqual(minusInfinity, { entries: [], nextMs: 0, isComplete: true }, 'rule 9: what is due at no time')
  const between = await read(store, 3.5, 8)
  const upTo3 = { entries: entries.slice(0, 8), nextMs: 4, isComplete: true }
  demandEqual(between, upTo3, 'rule 9: as many as the limit, when those are all,')
  const cut = { entries: entries.slice(0, 7), nextMs: undefined, isComplete: false }
  demandEqual(await read(store, 3, 7), cut, 'rule 9: fewer than are due')

  const paged: DueEntry[] = []
  for (let isComplete = false; !isComplete; ) {
    const page = await read(store, 99, 33, paged.at(-1))
    demand(page.entries.length <= 33, `rule 9: of at most 33 entries ${page.entries.length} were read`)
    demand(page.entries.length > 0, `rule 9: a page behind ${show(paged.at(-1))} is empty, though not all was read`)
    paged.push(...page.entries)
    demand(paged.length <= entries.length, 'rule 9: what was read page by page comes again')
    isComplete = page.isComplete
    demandEqual(page.nextMs, isComplete ? 100 : undefined, 'rule 9: the time of the first entry beyond')
  }
  demandEqual(paged, entries.slice(0, 200), 'rule 9: what was read page by page')

  await store.deleteDue(entries.slice(20, 170), open())
  const left = [...entries.slice(0, 20), ...entries.slice(170)]
  demandEqual(await readAll(store), left, 'rule 9: what is left of 230 entries after 150 were deleted')
  const first = { entries: entries.slice(170, 171), nextMs: undefined, isComplete: false }
  const behindNothing = await read(store, 85, 1, entries[100])
  demandEqual(behindNothing, first, 'rule 9: what comes behind an entry that was deleted')
  const last = await read(store, Number.POSITIVE_INFINITY, 5, entries.at(-1))
  demandEqual(last, { entries: [], nextMs: undefined, isComplete: true }, 'rule 9: what comes behind the last entry')
}

export const checkDueKeys: Check = async ({ store }) => {
  await store.putDue(
    awkward.map((key) => dueAt(-7, key)),
    open(),
  )
  const found = (await readAll(store)).map(({ key }) => key)
  const inOrder = (keys: readonly string[]): string[] => [...keys].sort(compareUtf8)
  demandEqual(inOrder(found), inOrder(awkward), 'rule 9: the keys that are due')
  const short = found.filter((key) => Buffer.byteLength(key) < 1_000)
  demandEqual(short, inOrder(short), 'rule 9: the order of the keys of one time')
  for (const key of awkward) await store.deleteDue([dueAt(-7, key)], open())
  demandEqual(await readAll(store), [], 'rule 9: what is due after each was deleted')
  const refused = await store.putDue([dueAt(1, 'good'), dueAt(1, '\ud800')], open()).then(
    () => 'taken',
    (thrown: Error) => thrown.name,
  )
  demandEqual(refused, 'TerminalError', 'rule 9: how a key with half a surrogate pair is answered')
  demandEqual(await readAll(store), [], 'rule 9: what is due after a call was refused')
}
