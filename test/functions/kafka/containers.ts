/** Execution environments that are killed: at a call of a port, before its effect or behind it, nothing of them ever goes on. */
import type { Random } from '../../../lib/testing/simulator/random.ts'

/** Never comes back. */
const never = new Promise<never>(() => undefined)

export class Container {
  #isDead = false
  readonly #killed = Promise.withResolvers<never>()
  readonly #mayDie: () => boolean

  constructor(mayDie: () => boolean) {
    this.#mayDie = mayDie
    this.#killed.promise.catch(() => undefined)
  }

  get isDead(): boolean {
    return this.#isDead
  }

  /** What an invocation comes to: rejects where the process dies under it. */
  invocation<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#killed.promise])
  }

  /** A port that the process calls. `prepare` of sinks is no call: it does no I/O. */
  port<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (_, name) => {
        const value = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        if (name === 'prepare') return value.bind(target)
        return async (...given: unknown[]) => {
          await this.#passes()
          const answer = await value.apply(target, given)
          await this.#passes()
          return answer
        }
      },
    })
  }

  async #passes(): Promise<void> {
    if (!this.#isDead && this.#mayDie()) {
      this.#isDead = true
      this.#killed.reject(new Error('Runtime exited with error: signal: killed'))
    }
    if (this.#isDead) await never
  }
}

/** Dies now and then, until it has died so often. */
export function killsOf(random: Random, chance: number, most: number): () => boolean {
  let left = most
  return () => {
    if (left <= 0 || !random.chance(chance)) return false
    left -= 1
    return true
  }
}
