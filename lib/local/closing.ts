/** What has to be let go of, in the reverse of the order in which it was taken. */
export class Closing {
  readonly #steps: (() => unknown)[] = []
  #closed: Promise<void> | undefined

  /** Adds a step; the last one added runs first. */
  defer(step: () => unknown): void {
    this.#steps.push(step)
  }

  /** Runs every step, also behind one that fails; rejects with the first failure. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#run()
    return this.#closed
  }

  async #run(): Promise<void> {
    const failures: unknown[] = []
    for (const step of this.#steps.toReversed()) {
      try {
        await step()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}
