import type { SlotMemo } from '../../core/slot.ts'
import type { KeyedStage } from '../../plan/plan.ts'
import type { ShortTexts } from '../frames/byte-reader.ts'
import type { StageParts } from '../stage-parts.ts'
import type { WarmKeys } from './warm-keys.ts'

/** What the batches of a keyed stage have in common. */
export interface KeyedParts extends StageParts<KeyedStage> {
  readonly warm: WarmKeys
  /** The slots of the stage's own keys. */
  readonly slots: SlotMemo
  /** The short texts that its frames have had, its keys among them. */
  readonly shortTexts: ShortTexts
  /** Keys that are changed before they are published and committed. */
  readonly mostKeysPerCommit: number
}
