/** Ports that carry something else than what was put into them, as a runtime that breaks a rule would have written it. */
import type { Frame } from '../../runtime/frames/frame.ts'
import { decodeFrame, encodeFrame } from '../../runtime/frames/frame-format.ts'
import type { FramePublisher } from '../../runtime/frames/publisher.ts'
import type { KeyedProgress, SourceProgress } from '../../runtime/progress/progress.ts'
import {
  readKeyedProgress,
  readSourceProgress,
  writeKeyedProgress,
  writeSourceProgress,
} from '../../runtime/progress/progress-format.ts'
import type { StateStore } from '../../state/state-store.ts'
import { storeWith } from './canary.ts'

export type Rewrite = (frame: Frame) => Frame

/** A publisher whose frames are others, as if they had been made so. */
export const publisherWith = (publisher: FramePublisher, rewrite: Rewrite): FramePublisher => ({
  publish(frames, signal) {
    const others = frames.map((encoded) => {
      const frame = decodeFrame(encoded.bytes)
      return frame.kind === 'frame' ? encodeFrame(rewrite(frame)) : encoded
    })
    return publisher.publish(others, signal)
  },
})

/** What becomes of progress: that of a keyed stage, or of the stage that reads the source. */
export interface ProgressChange {
  readonly read?: (progress: KeyedProgress) => KeyedProgress
  readonly write?: (progress: KeyedProgress) => KeyedProgress
  readonly readSource?: (progress: SourceProgress) => SourceProgress
}

/** A store whose progress is read or written otherwise. */
export const storeWithProgress = (
  store: StateStore,
  { keyed, source }: { readonly keyed: string; readonly source: string },
  { read, write, readSource }: ProgressChange,
): StateStore =>
  storeWith(store, {
    async readProgress(partition, signal) {
      const stored = await store.readProgress(partition, signal)
      if (stored === undefined) return undefined
      const { version, value } = stored
      if (read && partition.startsWith(`${keyed}/`)) {
        return { version, value: writeKeyedProgress(read(readKeyedProgress(value))) }
      }
      if (readSource && partition.startsWith(`${source}/`)) {
        return { version, value: writeSourceProgress(readSource(readSourceProgress(value))) }
      }
      return stored
    },
    writeProgress(partition, readVersion, value, signal) {
      const isChanged = write !== undefined && partition.startsWith(`${keyed}/`)
      const changed = isChanged ? writeKeyedProgress(write(readKeyedProgress(value))) : value
      return store.writeProgress(partition, readVersion, changed, signal)
    },
  })
