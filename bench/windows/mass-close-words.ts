/** What the process that closes windows and the one that keeps the tables say to each other. */

/** A frame of the stage's stream. */
export interface SentFrame {
  readonly position: string
  readonly payload: Uint8Array
  readonly arrivalTimeMs: number
}

export type ToWorker =
  | { readonly kind: 'invoke'; readonly frames: readonly SentFrame[]; readonly invocationMs: number }
  | { readonly kind: 'answer'; readonly id: number; readonly value?: unknown; readonly error?: string }

export type FromWorker =
  /** A call of a port of the parent's: a method of the state store, or `deliver` of a sink. */
  | { readonly kind: 'call'; readonly id: number; readonly method: string; readonly args: readonly unknown[] }
  /** The invocation ended: how many frames come again, how late it was, and its largest resident set. */
  | { readonly kind: 'done'; readonly notDone: number; readonly pastDeadlineMs: number; readonly rssBytes: number }
