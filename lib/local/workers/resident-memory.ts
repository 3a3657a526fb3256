import { readFileSync } from 'node:fs'

/** Memory that a process holds in MB, everything in it counted; `undefined` where this cannot be told. */
export type ResidentMb = (pid: number) => number | undefined

/** What Linux says. Elsewhere there is no way that costs less than a process per look, so there the heap alone is bounded. */
export const residentMb: ResidentMb = (pid) => {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
    return kilobytes === undefined ? undefined : Number(kilobytes) / 1_024
  } catch {
    return undefined
  }
}
