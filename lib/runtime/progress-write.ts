/**
 * The last act of an attempt: its progress, under the condition that no other attempt was there before. Whoever won, the
 * answer comes from what is stored.
 */
import { RetryableError } from '../core/errors.ts'
import type { StateStore, StateValue } from '../state/state-store.ts'

interface Parts {
  readonly stage: { readonly name: string }
  readonly store: StateStore
}

/** Progress as a stored value, and back. */
export interface ProgressFormat<P> {
  write(progress: P): StateValue
  read(value: StateValue): P
}

export class ProgressWrite<P extends { readonly completed: string | undefined }> {
  readonly #parts: Parts
  readonly #name: string
  readonly #encode: (progress: P) => StateValue
  readonly #decode: (value: StateValue) => P
  #version: number
  #isOurs = false

  constructor(parts: Parts, partition: string, version: number, format: ProgressFormat<P>) {
    this.#parts = parts
    this.#name = `${parts.stage.name}/${partition}`
    this.#version = version
    this.#encode = format.write
    this.#decode = format.read
  }

  /** The version that is stored, if `isOurs`. */
  get version(): number {
    return this.#version
  }

  /** True where the last write took place and was answered. */
  get isOurs(): boolean {
    return this.#isOurs
  }

  /** Writes progress; false where another attempt was there before, or the answer was lost. */
  async write(progress: P, signal: AbortSignal): Promise<boolean> {
    this.#isOurs = false
    this.#isOurs = await this.#parts.store.writeProgress(this.#name, this.#version, this.#encode(progress), signal)
    if (this.#isOurs) this.#version++
    return this.#isOurs
  }

  /**
   * Writes progress and gives what is stored then, by whomever. `isOwn` tells what this attempt wrote before without hearing of
   * it: where that is found, it is written over.
   */
  async finish(progress: P, signal: AbortSignal, isOwn: (stored: P) => boolean = () => false): Promise<P> {
    let failure: unknown = new RetryableError('progress was neither written nor found', { code: 'progress-conflict' })
    try {
      if (await this.write(progress, signal)) return progress
    } catch (error) {
      // Unanswered: it may have taken place, so what is stored decides.
      if (signal.aborted) throw error
      failure = error
    }
    const stored = await this.#parts.store.readProgress(this.#name, signal)
    // Nobody wrote since this attempt began, so the write did not take place, and its error says why.
    if ((stored?.version ?? 0) === this.#version || stored === undefined) throw failure
    const found = this.#decode(stored.value)
    if (stored.version !== this.#version + 1 || !isOwn(found)) return found
    this.#version = stored.version
    return this.finish(progress, signal)
  }
}
