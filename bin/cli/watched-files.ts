import { stat } from 'node:fs/promises'

interface Stamped {
  readonly stamp: string
  readonly changedAtMs: number
}

/** When a file was last changed; a file that is gone has a stamp, too. */
async function stampOf(file: string): Promise<Stamped> {
  const found = await stat(file).catch(() => undefined)
  if (found === undefined) return { stamp: 'gone', changedAtMs: 0 }
  return { stamp: `${found.mtimeMs} ${found.size} ${found.ino}`, changedAtMs: found.mtimeMs }
}

/**
 * Says when files that code was made of have changed. It looks at them when it is asked, which works on every file system and with
 * editors that replace a file instead of writing it.
 */
export class WatchedFiles {
  #stamps = new Map<string, string>()
  #seen: string | undefined

  /** Follows what was compiled from `compiledAtMs` on: a save in the midst of that counts as a change. */
  async follow(files: readonly string[], compiledAtMs: number): Promise<void> {
    const before = this.#stamps
    const stamps = files.map(async (file) => {
      const { stamp, changedAtMs } = await stampOf(file)
      return [file, before.get(file) ?? (changedAtMs >= compiledAtMs ? 'newer' : stamp)] as const
    })
    this.#stamps = new Map(await Promise.all(stamps))
  }

  /** True once files have changed and then stayed the same from one question to the next: a save may take several writes. */
  async haveChanged(): Promise<boolean> {
    const stamps = [...this.#stamps.keys()].map(async (file) => [file, (await stampOf(file)).stamp] as const)
    const now = new Map(await Promise.all(stamps))
    const text = JSON.stringify([...now])
    const isNew = text !== JSON.stringify([...this.#stamps])
    const isSettled = isNew && text === this.#seen
    this.#seen = text
    if (isSettled) this.#stamps = now
    return isSettled
  }
}
