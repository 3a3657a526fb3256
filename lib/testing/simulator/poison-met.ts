/** Which kinds of poison a run met, as its dead letters tell. */
import type { DeadLetter } from '../../runtime/dead-letter.ts'

export function poisonMet(letters: readonly DeadLetter[]): ReadonlyMap<string, number> {
  const met = new Map<string, number>()
  for (const { keyed, reason } of new Map(letters.map((letter) => [letter.id, letter])).values()) {
    if (reason.phase === 'timer') {
      met.set('timer that throws', (met.get('timer that throws') ?? 0) + 1)
      continue
    }
    const where = keyed === undefined ? 'in a record' : 'in a frame'
    const kind = reason.code === 'killed-process' ? 'ends its process' : `fails in phase ${reason.phase}`
    const name = `poison ${where} ${kind}`
    met.set(name, (met.get(name) ?? 0) + 1)
  }
  return met
}
