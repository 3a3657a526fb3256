/** Tells what of a run was spent inside its store in memory, which stands for a service that is not the runner's own. */
import type { StateStore } from '../../lib/state/state-store.ts'

export class StoreMeter {
  /** Looking at the clock costs something itself, so it is done only where asked. */
  isOn = false
  #spentMicros = 0

  /** The store, metered: its calls do all their work before they return. */
  meter(store: StateStore): StateStore {
    return new Proxy(store, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name)
        if (typeof method !== 'function' || !this.isOn) return bound(method, target)
        return (...args: unknown[]) => {
          const before = process.threadCpuUsage()
          try {
            return method.apply(target, args)
          } finally {
            this.#spentMicros += microsSince(before)
          }
        }
      },
    })
  }

  /** CPU of this thread inside the store since the last call. */
  takeMicros(): number {
    const spent = this.#spentMicros
    this.#spentMicros = 0
    return spent
  }
}

const bound = (method: unknown, target: StateStore): unknown =>
  typeof method === 'function' ? method.bind(target) : method

/** CPU of this thread, in microseconds; other threads, such as the garbage collector's, do not count. */
export function microsSince(before: ReturnType<typeof process.threadCpuUsage>): number {
  const { user, system } = process.threadCpuUsage(before)
  return user + system
}
