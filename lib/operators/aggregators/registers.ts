/**
 * The registers of a HyperLogLog sketch: of the hashes that begin alike, the longest run of zeros that follows. They depend
 * on the set of values alone, and are never changed.
 *
 * 1. While few are set, they are kept as a set of (register, run) pairs, each in one number; from then on as bytes.
 * 2. The estimate is Ertl's improved one: it needs no table of corrections and is unbiased for few values and for many.
 *
 * @see https://arxiv.org/abs/1702.01284
 */
import { hash } from 'node:crypto'
import { GrowingSet } from './growing-set.ts'

export type Registers = GrowingSet | Uint8Array

/** Pairs are `register * 64 + run`. */
const runsPerRegister = 64
/** As bytes, registers take this many times less than as pairs in the table. */
const pairsPerBytes = 8

/** The registers with one more value, given as text that only equal values share. `precision` is the log2 of their number. */
export function withValue(registers: Registers, text: string, precision: number): Registers {
  const bytes = hash('md5', text, 'buffer')
  const register = bytes.readUInt32BE(0) >>> (32 - precision)
  const high = bytes.readUInt32BE(4)
  const run = 1 + (high === 0 ? 32 + Math.min(Math.clz32(bytes.readUInt32BE(8)), 20) : Math.clz32(high))
  return withRun(registers, register, run, precision)
}

/** The registers of both sets together. */
export function unitedRegisters(a: Registers, b: Registers, precision: number): Registers {
  if (b instanceof GrowingSet) {
    if (a instanceof GrowingSet) return compacted(a.union(b), precision)
    return unitedRegisters(b, a, precision)
  }
  const united = a instanceof GrowingSet ? bytesOf(a, precision) : a.slice()
  for (let i = 0; i < united.length; i += 1) united[i] = Math.max(united[i] as number, b[i] as number)
  return united
}

/** How many different values there are, about. */
export function estimate(registers: Registers, precision: number): number {
  const bytes = registers instanceof GrowingSet ? bytesOf(registers, precision) : registers
  const longest = 64 - precision
  const counts = new Array<number>(longest + 2).fill(0)
  for (const run of bytes) counts[Math.min(run, longest + 1)] = (counts[Math.min(run, longest + 1)] as number) + 1
  const all = bytes.length
  let sum = all * tau(1 - (counts[longest + 1] as number) / all)
  for (let run = longest; run >= 1; run -= 1) sum = 0.5 * (sum + (counts[run] as number))
  sum += all * sigma((counts[0] as number) / all)
  return Math.round((all * all) / (2 * Math.LN2 * sum))
}

function withRun(registers: Registers, register: number, run: number, precision: number): Registers {
  if (registers instanceof GrowingSet) {
    const after = registers.with(register * runsPerRegister + run)
    return after === registers ? after : compacted(after, precision)
  }
  if ((registers[register] as number) >= run) return registers
  const after = registers.slice()
  after[register] = run
  return after
}

const compacted = (pairs: GrowingSet, precision: number): Registers =>
  pairs.size > 2 ** precision / pairsPerBytes ? bytesOf(pairs, precision) : pairs

function bytesOf(pairs: GrowingSet, precision: number): Uint8Array {
  const bytes = new Uint8Array(2 ** precision)
  for (const pair of pairs.sorted() as readonly number[]) {
    // Ascending, so the longest run of a register comes last.
    bytes[Math.floor(pair / runsPerRegister)] = pair % runsPerRegister
  }
  return bytes
}

function sigma(share: number): number {
  if (share === 1) return Number.POSITIVE_INFINITY
  let [x, y, z] = [share, 1, share]
  for (;;) {
    x *= x
    const before = z
    z += x * y
    y += y
    if (z === before) return z
  }
}

function tau(share: number): number {
  if (share === 0 || share === 1) return 0
  let [x, y, z] = [share, 1, 1 - share]
  for (;;) {
    x = Math.sqrt(x)
    const before = z
    y *= 0.5
    z -= (1 - x) ** 2 * y
    if (z === before) return z / 3
  }
}
