/** What the process that closes windows and the one that keeps the tables say to each other. */

/** A frame of the stage's stream. */
export interface SentFrame {
  readonly position: string
  readonly payload: Uint8Array
  readonly arrivalTimeMs: number
}

/** What the sink is given of a result. */
export interface SentResult {
  readonly identity: string
  readonly key: string
}

export interface Invoke {
  readonly kind: 'invoke'
  /** Of the embedded DynamoDB. */
  readonly endpoint: string
  readonly frames: readonly SentFrame[]
  readonly invocationMs: number
  /** The commit at which the process kills itself, counted from 1; undefined lets it live. */
  readonly killAtCommit: number | undefined
}

export type ToWorker = Invoke | { readonly kind: 'taken'; readonly id: number }

export type FromWorker =
  /** A call of the sink. */
  { readonly kind: 'deliver'; readonly id: number; readonly results: readonly SentResult[] } | Done

/** The invocation ended. */
export interface Done {
  readonly kind: 'done'
  /** Frames that come again. */
  readonly notDone: number
  readonly pastDeadlineMs: number
  /** Commits that it began. */
  readonly commits: number
  /** The largest resident set of the process. */
  readonly rssBytes: number
}
