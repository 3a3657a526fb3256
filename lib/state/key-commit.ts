/**
 * From a draft to what the table is to hold.
 *
 * 1. What has expired leaves the key's item. What a newer release wrote, or a state that nobody declares, stays.
 * 2. TTL may take an item once all that is left in it has expired and as long has gone by as a record can be on its way here
 *    (the retentions of all streams from the source on), and a day: longer than any record waits that may find it, and than
 *    any attempt can live. A value without a TTL keeps its item.
 * 3. The key's item outlives its entries: an entry that stays until it is removed keeps it, another one keeps it for a time.
 * 4. A timer keeps the key's item until it has fired or was cleared.
 */
import { writeOwn } from './key-own.ts'
import type { StateCell } from './state-cell.ts'
import type { KeyCommit, StateValue } from './state-store.ts'

/** A key's times: the largest of its records so far, minus infinity before the first. */
export interface KeyTimes {
  readonly eventTimeMs: number
  readonly arrivalTimeMs: number
}

/** What the key's item knows of its entries. */
export interface EntryBook {
  readonly lastingEntries: number
  readonly entriesUntilSeconds: number
  readonly entriesSince: number | undefined
}

/** A value of a state that is not declared, with what was kept beside it. */
export interface UndeclaredState {
  readonly name: string
  readonly value: StateValue
  readonly own: StateValue | undefined
}

export interface DraftContent {
  readonly key: string
  readonly readPosition: number | undefined
  readonly position: number
  readonly times: KeyTimes
  /** Whether the stage declares a map state. */
  readonly keepsEntries: boolean
  readonly cells: Iterable<StateCell>
  readonly undeclared: readonly UndeclaredState[]
  readonly changedEntries: Iterable<StateCell>
  readonly book: EntryBook
  /** Undefined where none is set. */
  readonly timers: StateValue | undefined
  /** By identity, with when they may be forgotten, in seconds since 1970 UTC. */
  readonly redrives: ReadonlyMap<string, number>
}

const dayMs = 86_400_000
const secondsOf = (ms: number): number => Math.ceil(ms / 1_000)

/** The time of the key that the cell's TTL goes by. */
export const timeOf = ({ declaration: { ttl } }: StateCell, { eventTimeMs, arrivalTimeMs }: KeyTimes): number =>
  ttl?.by === 'processing-time' ? arrivalTimeMs : eventTimeMs

/** What to write, and the book of entries as it is then. */
export function commitOf(
  draft: DraftContent,
  nowMs: number,
  retentionMs: number,
): { readonly commit: KeyCommit; readonly book: EntryBook } {
  const { key, readPosition, position, times, timers } = draft
  const lingerMs = nowMs + retentionMs + dayMs
  const entries = entriesOf(draft, lingerMs)
  const book = bookAfter(draft, entries)
  const { states, owns, stays, longestMs } = statesOf(draft)
  const redrives = draft.redrives.size === 0 ? [] : keptRedrives(draft.redrives, nowMs)
  const lastSeconds = Math.max(book.entriesUntilSeconds, ...redrives.map(([, untilSeconds]) => untilSeconds))
  const item = {
    position,
    states,
    expiresAtSeconds:
      stays || book.lastingEntries > 0 || timers !== undefined
        ? undefined
        : Math.max(secondsOf(lingerMs + longestMs), lastSeconds),
    own: writeOwn({
      eventTimeMs: Number.isFinite(times.eventTimeMs) ? times.eventTimeMs : undefined,
      arrivalTimeMs: Number.isFinite(times.arrivalTimeMs) ? times.arrivalTimeMs : undefined,
      states: owns,
      entriesSince: book.entriesSince,
      lastingEntries: book.lastingEntries || undefined,
      entriesUntilSeconds: book.entriesUntilSeconds || undefined,
      timers,
      redrives: redrives.length === 0 ? undefined : Object.fromEntries(redrives),
    }),
  }
  return { commit: { key, readPosition, item, entries }, book }
}

const keptRedrives = (redrives: ReadonlyMap<string, number>, nowMs: number): [id: string, untilSeconds: number][] =>
  [...redrives].filter(([, untilSeconds]) => untilSeconds * 1_000 > nowMs)

function statesOf({ cells, undeclared, times }: DraftContent) {
  const states: [name: string, value: StateValue][] = undeclared.map(({ name, value }) => [name, value])
  const owns = undeclared.flatMap(({ name, own }): [string, StateValue][] => (own === undefined ? [] : [[name, own]]))
  let stays = states.length > 0
  let longestMs = 0
  for (const cell of cells) {
    const timeMs = timeOf(cell, times)
    const value = cell.isKeptAt(timeMs) ? cell.encoded() : undefined
    if (value === undefined) continue
    states.push([cell.place.state, value])
    const own = cell.own(timeMs)
    if (own !== undefined) owns.push([cell.place.state, own])
    if (cell.declaration.ttl === undefined) stays = true
    else longestMs = Math.max(longestMs, cell.remainingMs(timeMs))
  }
  return {
    states: Object.fromEntries(states),
    owns: owns.length === 0 ? undefined : Object.fromEntries(owns),
    stays,
    longestMs,
  }
}

function entriesOf({ changedEntries, times }: DraftContent, lingerMs: number): KeyCommit['entries'] {
  const entries: KeyCommit['entries'][number][] = []
  for (const cell of changedEntries) {
    const { state, entry = '' } = cell.place
    const timeMs = timeOf(cell, times)
    const isKept = cell.isKeptAt(timeMs)
    if (isKept) {
      const expiresAtSeconds =
        cell.declaration.ttl === undefined ? undefined : secondsOf(lingerMs + cell.remainingMs(timeMs))
      entries.push({ state, entry, value: cell.encoded(), expiresAtSeconds, own: cell.own(timeMs) })
    } else if (cell.isStored) {
      entries.push({ state, entry, value: undefined, expiresAtSeconds: secondsOf(lingerMs) })
    }
  }
  return entries
}

function bookAfter(draft: DraftContent, entries: KeyCommit['entries']): EntryBook {
  const { changedEntries, times, book, position, readPosition, keepsEntries } = draft
  let { lastingEntries, entriesUntilSeconds } = book
  for (const cell of changedEntries) {
    lastingEntries += Number(cell.isLastingAt(timeOf(cell, times))) - Number(cell.isLasting)
  }
  for (const { value, expiresAtSeconds = 0 } of entries) {
    if (value !== undefined) entriesUntilSeconds = Math.max(entriesUntilSeconds, expiresAtSeconds)
  }
  return {
    lastingEntries,
    entriesUntilSeconds,
    entriesSince: keepsEntries && readPosition === undefined ? position : book.entriesSince,
  }
}
