/**
 * The state of a keyed stage for whoever reads its table: one key by point lookup, and what changes by the table's stream.
 * Readers see what a step of the stage would see, in the user's types, without the attributes of the runner.
 *
 * 1. There is one copy: a reader reads the items that the stage wrote, and writes nothing.
 * 2. What has expired by the time of its key is not shown, whether or not DynamoDB has removed it yet.
 * 3. A lookup shows one commit: where a commit falls between its reads, it reads again.
 * 4. Values of an older schema version go through the stage's upcasters; one of a newer version is a RetryableError.
 */
import type {
  BatchGetItemCommand,
  BatchGetItemCommandOutput,
  QueryCommand,
  QueryCommandOutput,
} from '@aws-sdk/client-dynamodb'
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError, RetryableError } from '../../core/errors.ts'
import type { AnyStateDeclaration, StateDeclarations } from '../../operators/keyed/declarations.ts'
import { plan, type StagePlan, stageNamed } from '../../plan/plan.ts'
import { KeyDraft, linkStates } from '../../state/key-draft.ts'
import { entryKey, type Key, keyItemKey, keyOfText, keyText } from '../../state/key-encoding.ts'
import type { EntryItem, EntryName, KeyItem } from '../../state/state-store.ts'
import type { MapView, StateDeclaration, ViewOf } from '../../state/states.ts'
import type { Topology } from '../../topology/topology.ts'
import { systemClock } from '../system-clock.ts'
import { readEntryItem, readKeyItem, type TableItem } from './items.ts'
import { type DynamoDBStatePort, DynamoDBStateStore } from './store.ts'

/**
 * What a reader reads, by operator: of a `process` what it declares as `state`, or a part of it; of an operator with one state
 * (`aggregate`, `reduce`) a declaration of the same kind and type.
 */
export type ReadDeclarations = { readonly [operator: string]: StateDeclarations | StateDeclaration }

type IsMap<D> = D extends { readonly kind: 'map' } ? true : false
type ReadValue<D> =
  ViewOf<D> extends MapView<infer V> ? ReadonlyMap<string, V> : ViewOf<D> extends { get(): infer T } ? T : never
/** Operator states are kept per slot, not per key, so a reader of keys has none. */
type KeyStates<D> = {
  readonly [N in keyof D as D[N] extends { readonly kind: 'operator' } ? never : N]: ReadValue<D[N]>
}
type ItemStates<D> = {
  readonly [N in keyof D as D[N] extends { readonly kind: 'operator' | 'map' } ? never : N]: ReadValue<D[N]>
}
type IsState<D> = D extends { readonly kind: string } ? true : false

/** The states of one key, by operator and name. Lists are empty and maps have no entries where there is nothing. */
export type ReadStates<R extends ReadDeclarations> = {
  readonly [O in keyof R]: IsState<R[O]> extends true ? ReadValue<R[O]> : KeyStates<R[O]>
}

/** As {@link ReadStates}, without map states: their entries are items of their own. */
export type ReadItemStates<R extends ReadDeclarations> = {
  readonly [O in keyof R as IsMap<R[O]> extends true ? never : O]: IsState<R[O]> extends true
    ? ReadValue<R[O]>
    : ItemStates<R[O]>
}

/** What a lookup finds. */
export interface KeyState<R extends ReadDeclarations> {
  readonly key: Key
  /** The number of the stage's log that the states include. It grows with every commit of the key. */
  readonly position: number
  readonly states: ReadStates<R>
}

/** The item of a key was written, or removed by TTL. */
export interface KeyChange<R extends ReadDeclarations> {
  readonly kind: 'key'
  readonly key: Key
  /** Of the commit; of an item that TTL removed, of its last commit. */
  readonly position: number
  /** Undefined where there was none, or the stream keeps no old images. */
  readonly before: ReadItemStates<R> | undefined
  /** Undefined where TTL removed it. */
  readonly after: ReadItemStates<R> | undefined
}

type EntryOf<Name extends string, V> = {
  readonly kind: 'entry'
  readonly key: Key
  readonly position: number
  /** The name in the table: `<operator>.<state>`. */
  readonly state: Name
  readonly entry: string
  /** Undefined where there was none, or the stream keeps no old images. */
  readonly before: V | undefined
  /** Undefined where it is gone. */
  readonly after: V | undefined
}

/** An entry of a map state was written or removed: a union over the map states, told apart by `state`. */
export type EntryChange<R extends ReadDeclarations> = {
  [O in keyof R & string]: {
    [N in keyof R[O] & string]: ViewOf<R[O][N]> extends MapView<infer V> ? EntryOf<`${O}.${N}`, V> : never
  }[keyof R[O] & string]
}[keyof R & string]

export type StateChange<R extends ReadDeclarations> = KeyChange<R> | EntryChange<R>

/** An attribute value as an event of Lambda or a record of the SDK has it. */
export interface ImageValue {
  readonly S?: string | undefined
  readonly N?: string | undefined
  /** Base64 in an event of Lambda. */
  readonly B?: string | Uint8Array | undefined
  readonly BOOL?: boolean | undefined
  readonly NULL?: boolean | undefined
  readonly NS?: readonly string[] | undefined
  readonly L?: readonly ImageValue[] | undefined
  readonly M?: { readonly [name: string]: ImageValue } | undefined
}

/** What is needed of a record of DynamoDB Streams, from an event of Lambda (`event.Records`) or from `GetRecords`. */
export interface StreamImage {
  readonly eventName?: string | undefined
  readonly dynamodb?:
    | {
        readonly OldImage?: { readonly [name: string]: ImageValue } | undefined
        readonly NewImage?: { readonly [name: string]: ImageValue } | undefined
      }
    | undefined
}

/** The states of a stage as one reader sees them. */
export interface StateView<R extends ReadDeclarations> {
  readonly stage: string
  /** By stored name, those that the reader reads. */
  readonly states: ReadonlyMap<string, StateDeclaration>
  /** Makes the states of a key of what the table holds of it. */
  read(key: string, item: KeyItem, entries: ReadonlyMap<string, ReadonlyMap<string, EntryItem>>): ReadStates<R>
  /**
   * Decodes one record of the table's stream; undefined for what is not about the states of a key that the view reads (progress, the
   * manifest, entries of other states). Throws a {@link ConfigurationError} where the stream has no new images, and a
   * RetryableError for what a newer release wrote.
   *
   * A change comes at least once, and those of one item in order: a consumer that keeps the position of each item takes each once.
   *
   * @example
   * for (const record of event.Records) {
   *   const change = accounts.change(record)
   *   if (change?.kind === 'key') console.log(change.key, change.after?.account.balanceCents)
   * }
   */
  change(record: StreamImage): StateChange<R> | undefined
}

/**
 * A typed view of a keyed stage's table: which states, and of which types. It reads nothing itself.
 *
 * Throws a {@link ConfigurationError} for a stage that keeps no keys, and for a state that it does not declare.
 *
 * @param stage the name of the `keyBy`
 * @example
 * const accounts = stateView(tableFirstApp, 'by-account', { account: accountState })
 */
export function stateView<R extends ReadDeclarations>(topology: Topology, stage: string, reads: R): StateView<R> {
  const states = selected(stageNamed(plan(topology), stage), reads)
  const read: StateView<R>['read'] = (key, item, entries) => {
    const draft = draftOf(stage, key, item, states)
    for (const [name, { kind }] of states)
      if (kind === 'map') draft.loadAllEntries(name, entries.get(name) ?? new Map())
    return valuesOf(reads, states, draft, () => true) as ReadStates<R>
  }
  return { stage, states, read, change: (record) => changeOf(stage, reads, states, record) }
}

/** What is needed of a `DynamoDBClient`. */
export interface StateReaderPort {
  send(command: BatchGetItemCommand): Promise<BatchGetItemCommandOutput>
  send(command: QueryCommand): Promise<QueryCommandOutput>
}

export interface StateReaderOptions<R extends ReadDeclarations> {
  readonly client: StateReaderPort
  /** Of the stage; `<topology>-<stage>-state` where nobody said otherwise. */
  readonly tableName: string
  readonly view: StateView<R>
  /** What retries of throttled reads go by. @default the machine's clock */
  readonly clock?: Clock
}

export interface StateReader<R extends ReadDeclarations> {
  /**
   * What the stage keeps of a key by now, strongly consistent; undefined where it keeps nothing. It costs 1 read unit per 4 KB of the
   * key's item and, where the view has map states, of all entries of each; leave large maps out of the view.
   *
   * Rejects with a RetryableError where the table cannot be read or `signal` aborts.
   */
  get(key: Key, signal?: AbortSignal): Promise<KeyState<R> | undefined>
  /**
   * One entry of a map state, by the state's name in the table, strongly consistent; undefined where there is none. It costs the key's
   * item and the entry, 1 read unit per 4 KB of each, whatever the size of the map. Rejects as `get`.
   *
   * @example
   * const pieces = await reader.entry('bern', 'stock.pieces', 'tea') // number | undefined
   */
  entry<N extends EntryChange<R>['state']>(
    key: Key,
    state: N,
    entry: string,
    signal?: AbortSignal,
  ): Promise<Extract<EntryChange<R>, { readonly state: N }>['after']>
}

/** A key that is committed more often than this during one lookup is left to a later one. */
const mostReads = 10

/**
 * Reads the table of a keyed stage. The role needs `dynamodb:BatchGetItem`, and `dynamodb:Query` where the view has map states.
 *
 * @example
 * const reader = readState({ client: new DynamoDBClient(), tableName: 'table-first-by-account-state', view: accounts })
 * const account = await reader.get('a-1')
 * account?.states.account.balanceCents // number | undefined
 */
export function readState<R extends ReadDeclarations>(options: StateReaderOptions<R>): StateReader<R> {
  const { client, tableName, view, clock = systemClock } = options
  const store = new DynamoDBStateStore({
    client: client as DynamoDBStatePort,
    ...{ tableName, clock, stage: view.stage },
  })
  const maps = [...view.states].flatMap(([name, { kind }]) => (kind === 'map' ? [name] : []))
  return {
    async entry(key, state, entry, signal = new AbortController().signal) {
      const text = keyText(key)
      // The key's item has the time that a TTL goes by, and tells which entries are of an earlier life of the key.
      const item = (await store.readKeys([text], signal)).get(text)
      if (item === undefined) return undefined
      const [found] = await store.readEntries([{ key: text, state, entry }], signal)
      return visibleEntry(view.stage, view.states, { key: text, state, entry }, item, found) as never
    },
    async get(key, signal = new AbortController().signal) {
      const text = keyText(key)
      let known: number | undefined
      for (let reads = 0; reads < mostReads; reads += 1) {
        const item = (await store.readKeys([text], signal)).get(text)
        if (item === undefined) return undefined
        const entries = new Map<string, ReadonlyMap<string, EntryItem>>()
        for (const map of maps) entries.set(map, await store.listEntries(text, map, signal))
        const isTorn = [...entries.values()].some((map) => newest(map) > item.position)
        // Where the same item comes twice, no commit is under way: TTL took a later item of the key, and the entry stayed.
        if (isTorn && item.position !== known) {
          known = item.position
          continue
        }
        const upTo = isTorn ? new Map([...entries].map(([map, all]) => [map, until(all, item.position)])) : entries
        return { key, position: item.position, states: view.read(text, item, upTo) }
      }
      throw new RetryableError(
        `stage "${view.stage}": key ${JSON.stringify(text.slice(0, 100))} was committed during each of ${mostReads} reads: read it again, or leave its map states out of the view`,
        { code: 'state-changing' },
      )
    },
  }
}

const newest = (entries: ReadonlyMap<string, EntryItem>): number =>
  Math.max(0, ...[...entries.values()].map(({ position }) => position))

const until = (entries: ReadonlyMap<string, EntryItem>, last: number): ReadonlyMap<string, EntryItem> =>
  new Map([...entries].filter(([, { position }]) => position <= last))

const isState = (declared: StateDeclarations | StateDeclaration): declared is StateDeclaration =>
  typeof (declared as { readonly kind?: unknown }).kind === 'string'

/** Stored name, operator, name within it (undefined where the operator has one state), and kind of each state that is read. */
function* named(
  reads: ReadDeclarations,
): Generator<readonly [string, string, string | undefined, AnyStateDeclaration]> {
  for (const [operator, declared] of Object.entries(reads)) {
    if (isState(declared)) yield [operator, operator, undefined, declared]
    else for (const [name, state] of Object.entries(declared)) yield [`${operator}.${name}`, operator, name, state]
  }
}

/** The stage's own declarations of what is read: they know its upcasters and results. */
function selected(stage: StagePlan, reads: ReadDeclarations): ReadonlyMap<string, StateDeclaration> {
  if (stage.kind !== 'keyed') {
    throw new ConfigurationError(
      `stage "${stage.name}" keeps no keys, so it has no state to read: name the stage of a keyBy.`,
    )
  }
  const states = new Map<string, StateDeclaration>()
  for (const [storedName, , , { kind }] of named(reads)) {
    if (kind === 'operator') continue
    const own = stage.states.get(storedName)
    if (own?.kind !== kind) {
      const has = [...stage.states].map(([name, state]) => `${name} (${state.kind})`).join(', ')
      throw new ConfigurationError(
        `stage "${stage.name}" has no ${kind} state "${storedName}": it has ${has || 'none'}.`,
      )
    }
    states.set(storedName, own)
  }
  return states
}

/** A draft that is never committed: it knows what a step would see. */
function draftOf(
  stage: string,
  key: string,
  item: KeyItem | undefined,
  states: ReadonlyMap<string, StateDeclaration>,
): KeyDraft {
  const draft = new KeyDraft(key, item, states, stage)
  draft.begin({ eventTimeMs: Number.NEGATIVE_INFINITY, arrivalTimeMs: Number.NEGATIVE_INFINITY })
  return draft
}

/** The values of a draft by operator and name, of those states whose kind is wanted. */
function valuesOf(
  reads: ReadDeclarations,
  states: ReadonlyMap<string, StateDeclaration>,
  draft: KeyDraft,
  isWanted: (kind: StateDeclaration['kind']) => boolean,
): object {
  const values: { [operator: string]: unknown } = {}
  for (const [storedName, operator, name] of named(reads)) {
    const declaration = states.get(storedName)
    // A process whose states are all left out is there all the same, so that its names can be asked for.
    if (name !== undefined) values[operator] ??= {}
    if (declaration === undefined || !isWanted(declaration.kind)) continue
    const value = visibleValue(storedName, declaration, draft)
    if (name === undefined) values[operator] = value
    else (values[operator] as { [name: string]: unknown })[name] = value
  }
  return values
}

function visibleValue(storedName: string, declaration: StateDeclaration, draft: KeyDraft): unknown {
  const { view } = linkStates(
    { view: declaration },
    () => storedName,
    () => draft,
  ) as { readonly view: ViewOf<StateDeclaration> }
  return 'entries' in view ? new Map(view.entries()) : view.get()
}

function changeOf<R extends ReadDeclarations>(
  stage: string,
  reads: R,
  states: ReadonlyMap<string, StateDeclaration>,
  { eventName, dynamodb }: StreamImage,
): StateChange<R> | undefined {
  const [before, after] = [imageOf(dynamodb?.OldImage), imageOf(dynamodb?.NewImage)]
  if (after === undefined && eventName !== 'REMOVE') {
    throw new ConfigurationError(
      'a record of the stream has no new image: give the table a stream of the view NEW_AND_OLD_IMAGES, or NEW_IMAGE.',
    )
  }
  const image = after ?? before
  const pk = image?.pkText?.S ?? image?.pk?.S ?? ''
  if (!pk.startsWith('key#')) return undefined
  const key = pk.slice('key#'.length)
  const change = { key: keyOfText(key) }
  const sk = image?.skText?.S ?? image?.sk?.S ?? ''
  if (sk === 'key') {
    const read = (item: TableItem | undefined): KeyItem | undefined => item && readKeyItem(keyItemKey(key), item)
    const [old, now] = [read(before), read(after)]
    const show = (item: KeyItem | undefined) =>
      item &&
      (valuesOf(reads, states, draftOf(stage, key, item, states), (kind) => kind !== 'map') as ReadItemStates<R>)
    return { kind: 'key', ...change, position: (now ?? old)?.position ?? 0, before: show(old), after: show(now) }
  }
  return entryChange(stage, states, key, sk, before, after) as EntryChange<R> | undefined
}

function visibleEntry(
  stage: string,
  states: ReadonlyMap<string, StateDeclaration>,
  { key, state, entry }: EntryName,
  keyItem: KeyItem,
  item: EntryItem | undefined,
): unknown {
  const draft = draftOf(stage, key, keyItem, states)
  draft.loadEntry(state, entry, item)
  return draft.readEntry(state, entry)
}

function entryChange(
  stage: string,
  states: ReadonlyMap<string, StateDeclaration>,
  key: string,
  sk: string,
  before: TableItem | undefined,
  after: TableItem | undefined,
): EntryOf<string, unknown> | undefined {
  // Of an entry nothing but its name comes behind the second separator, whatever is in it.
  const [, escaped, entry] = /^map#([^#]*)#([\s\S]*)$/.exec(sk) ?? []
  const state = escaped?.replaceAll('%23', '#').replaceAll('%25', '%')
  if (state === undefined || entry === undefined || states.get(state)?.kind !== 'map') return undefined
  const read = (item: TableItem | undefined): EntryItem | undefined =>
    item && readEntryItem(entryKey({ key, state, entry }), item)
  // The time of the key is not in the entry's item, so nothing counts as expired here.
  const keyItem: KeyItem = { position: 0, states: {}, expiresAtSeconds: undefined }
  const show = (item: EntryItem | undefined) => visibleEntry(stage, states, { key, state, entry }, keyItem, item)
  const [old, now] = [read(before), read(after)]
  const { position } = now ?? old ?? { position: 0 }
  return { kind: 'entry', key: keyOfText(key), position, state, entry, before: show(old), after: show(now) }
}

/** The image as the SDK's commands would have it: bytes instead of base64. */
function imageOf(image: { readonly [name: string]: ImageValue } | undefined): TableItem | undefined {
  if (image === undefined) return undefined
  return Object.fromEntries(Object.entries(image).map(([name, value]) => [name, attributeOf(value)])) as TableItem
}

function attributeOf(value: ImageValue): object {
  if (value.B !== undefined) return { B: typeof value.B === 'string' ? Buffer.from(value.B, 'base64') : value.B }
  if (value.L !== undefined) return { L: value.L.map(attributeOf) }
  return value.M === undefined ? value : { M: imageOf(value.M) }
}
