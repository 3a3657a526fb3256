/**
 * Reads the state of keys from the table, strongly consistent, in batches.
 *
 * 1. Key items are read before their entries, never in one call: an entry newer than its key item says that another
 *    attempt committed in between.
 * 2. Such a key is read again. When the same key item comes twice, TTL took the newer one, and the entry counts as absent.
 */
import { RetryableError } from '../../core/errors.ts'
import { KeyDraft } from '../../state/key-draft.ts'
import type { EntryItem, EntryName, KeyItem, StateStore } from '../../state/state-store.ts'
import type { StateDeclaration } from '../../state/states.ts'

/** What is to be loaded of a key's map state: one entry, or all where it is undefined. */
export interface WantedEntry {
  readonly state: string
  readonly entry: string | undefined
}

/** The key was committed by another attempt while it was read. */
export class KeyMoved extends Error {
  readonly item: KeyItem | undefined

  constructor(item: KeyItem | undefined) {
    super('another attempt committed the key while it was read')
    this.item = item
  }
}

/** How often a key may move while it is read before the batch comes again. */
const mostMoves = 20

/** The stage whose keys are read. */
interface LoadedStage {
  readonly name: string
  readonly states: ReadonlyMap<string, StateDeclaration>
}

export class KeyLoading {
  readonly #store: StateStore
  readonly #stage: LoadedStage
  readonly #signal: AbortSignal

  constructor(store: StateStore, stage: LoadedStage, signal: AbortSignal) {
    this.#store = store
    this.#stage = stage
    this.#signal = signal
  }

  draft(key: string, item: KeyItem | undefined): KeyDraft {
    const { name, states } = this.#stage
    return new KeyDraft(key, item, states, name)
  }

  /** Drafts of distinct keys. */
  async keys(keys: readonly string[]): Promise<Map<string, KeyDraft>> {
    const items = keys.length === 0 ? new Map() : await this.#store.readKeys(keys, this.#signal)
    return new Map(keys.map((key) => [key, this.draft(key, items.get(key))]))
  }

  /**
   * Loads declared entries of drafts that no step has touched yet; a draft whose key moved is replaced in `drafts`.
   */
  async prefetch(drafts: Map<string, KeyDraft>, names: readonly EntryName[]): Promise<void> {
    const wanted = names.filter(({ key, state, entry }) => !drafts.get(key)?.hasEntry(state, entry))
    if (wanted.length === 0) return
    const items = await this.#store.readEntries(wanted, this.#signal)
    const moved = new Set<string>()
    for (const [i, name] of wanted.entries()) {
      const draft = drafts.get(name.key) as KeyDraft
      if (isNewer(items[i], draft)) moved.add(name.key)
      else draft.loadEntry(name.state, name.entry, items[i])
    }
    for (const key of moved)
      drafts.set(
        key,
        await this.#untorn(
          key,
          wanted.filter((name) => name.key === key),
        ),
      )
  }

  /** Loads what a step found missing. Throws {@link KeyMoved} where the key is no longer the one that was read. */
  async more(draft: KeyDraft, { state, entry }: WantedEntry): Promise<void> {
    const { key } = draft
    if (entry === undefined) {
      const all = await this.#store.listEntries(key, state, this.#signal)
      // A newer commit may have removed an entry, of which the list says nothing: so the key is always read again.
      await this.#confirm(draft)
      const newer = [...all].filter(([, item]) => isNewer(item, draft))
      const absent = new Set(newer.map(([name]) => name))
      draft.loadAllEntries(state, new Map([...all].filter(([name]) => !absent.has(name))))
      return
    }
    const [item] = await this.#store.readEntries([{ key, state, entry }], this.#signal)
    if (isNewer(item, draft)) await this.#confirm(draft)
    draft.loadEntry(state, entry, isNewer(item, draft) ? undefined : item)
  }

  /** The same key item twice: the newer one is gone. */
  async #confirm(draft: KeyDraft): Promise<void> {
    const item = (await this.#store.readKeys([draft.key], this.#signal)).get(draft.key)
    if (item?.position !== draft.readPosition) throw new KeyMoved(item)
  }

  async #untorn(key: string, names: readonly EntryName[]): Promise<KeyDraft> {
    let item = (await this.#store.readKeys([key], this.#signal)).get(key)
    for (let move = 0; move < mostMoves; move++) {
      const draft = this.draft(key, item)
      try {
        for (const name of names) await this.more(draft, name)
        return draft
      } catch (error) {
        if (!(error instanceof KeyMoved)) throw error
        item = error.item
      }
    }
    throw new RetryableError('a key was committed by other attempts each time that it was read', { code: 'key-moved' })
  }
}

const isNewer = (item: EntryItem | undefined, { readPosition = -1 }: KeyDraft): boolean =>
  item !== undefined && item.position > readPosition
