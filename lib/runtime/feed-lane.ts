/** Outputs on their way to a keyed stage: records of frames, made inside the step that emits them. */
import { TerminalError } from '../core/errors.ts'
import { type RecordHeader, type RecordInfo, sharedHeaders } from '../core/record.ts'
import type { SlotMemo } from '../core/slot.ts'
import { encodeValue } from '../core/tagged-json.ts'
import type { Feed } from '../plan/plan.ts'
import { type Key, keyText } from '../state/key-encoding.ts'
import type { Origin, OutgoingRecord } from './frames/frame.ts'
import { firingPosition, ownPosition, type Position } from './frames/position.ts'
import type { Sender, SlottedRecord } from './frames/sender.ts'
import { LatestOnly } from './latest-only.ts'

/** Where the step at hand stands, and what its outputs inherit. */
export interface StepPlace {
  /** The number of the record in the stage's partition. */
  readonly number: number
  /** Of a key that fires at the number of another's record: the hash that orders it. */
  readonly keyHash?: string | undefined
  readonly ownMarkMs: number
  readonly origin: Origin
  /** The identity of a dead letter that was sent again. */
  readonly redrive: string | undefined
  /** How many outputs to keyed stages the step has made. */
  outputs: number
}

/** A record that may carry an own mark of its own, as results of windows do. */
export interface MarkedRecordInfo extends RecordInfo {
  readonly ownMarkMs?: number
}

const positionIn = ({ number, keyHash, outputs }: StepPlace): Position =>
  keyHash === undefined ? ownPosition(number, outputs) : firingPosition(number, keyHash, outputs)

/** What waits to be published to one keyed stage. */
export class FeedLane {
  readonly stage: string
  readonly sender: Sender
  readonly #feed: Feed
  readonly #slots: SlotMemo
  readonly #to: string
  items: SlottedRecord[] = []
  /** How many items there were before the record at hand. */
  mark = 0
  readonly latest = new LatestOnly()

  constructor(feed: Feed, sender: Sender, slots: SlotMemo) {
    this.stage = feed.stage
    this.sender = sender
    this.#feed = feed
    this.#slots = slots
    this.#to = `keyBy "${feed.keyBy.name}"`
  }

  /** Adds an output. Throws a {@link TerminalError} for a key or a value that cannot travel. */
  push(value: unknown, record: MarkedRecordInfo, place: StepPlace): void {
    const { name, key: keyOf } = this.#feed.keyBy
    const key = textOf(name, keyOf(value))
    const output: OutgoingRecord = {
      position: positionIn(place),
      side: name,
      key,
      ownMarkMs: record.ownMarkMs ?? place.ownMarkMs,
      eventTimeMs: record.eventTimeMs,
      value: encodeValue(value, this.#to),
      origin: place.origin,
      redrive: place.redrive === undefined ? undefined : `${place.redrive}/${place.outputs}`,
      headers: headersOf(record),
    }
    this.sender.checkFits(output)
    this.items.push({ slot: this.#slots.of(key), record: output })
    place.outputs++
  }

  /** Takes back what the record at hand has added, and says how many items that were. */
  rewind(): number {
    const added = this.items.length - this.mark
    this.items.length = this.mark
    this.latest.rewind(this.mark)
    return added
  }

  /** Takes out what waits, but for what a later output has replaced. */
  take(): readonly SlottedRecord[] {
    const { items } = this
    const kept = this.latest.take()
    this.items = []
    this.mark = 0
    return kept === undefined ? items : items.filter((_, i) => kept(i))
  }
}

/** The headers that go on with the outputs of a record; undefined where it has none. */
function headersOf(record: RecordInfo): readonly RecordHeader[] | undefined {
  const headers = sharedHeaders(record)
  if (headers.length === 0) return undefined
  if (headers.every(({ name }) => name.isWellFormed())) return headers
  throw new TerminalError('a header of the record has a name with half a surrogate pair, which UTF-8 cannot hold', {
    code: 'not-utf8',
  })
}

function textOf(name: string, key: unknown): string {
  const isKey = typeof key === 'string' || key instanceof Uint8Array || isTexts(key)
  if (!isKey) {
    throw new TerminalError(
      `the key function of keyBy "${name}" gave ${key === null ? 'null' : `a ${typeof key}`}: a key is text, bytes or a list of texts`,
      { code: 'key-not-text' },
    )
  }
  const text = keyText(key as Key)
  if (text.isWellFormed()) return text
  throw new TerminalError(
    `the key function of keyBy "${name}" gave text with half a surrogate pair, which UTF-8 cannot hold: different keys would become one`,
    { code: 'key-not-text' },
  )
}

const isTexts = (key: unknown): boolean => Array.isArray(key) && key.every((part) => typeof part === 'string')
