/**
 * Random numbers that follow from a seed and an event's number alone, so that any slice of the events can be made by itself.
 *
 * The generator is sfc32 (Chris Doty-Humphrey's small fast counter), seeded anew for each event by the finalizer of
 * MurmurHash3: events that follow each other have nothing in common.
 */
const range = 2 ** 32

/** MurmurHash3's finalizer: each bit of the input reaches each bit of the result. */
function mixed(value: number): number {
  let hash = value | 0
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

/** What a number is drawn for: draws for one purpose do not move those for another. */
export type Purpose = 'content' | 'delay' | 'url'
const salts: Readonly<Record<Purpose, number>> = { content: 0x9e3779b9, delay: 0x7f4a7c15, url: 0x94d049bb }

export class Random {
  #a = 0
  #b = 0
  #c = 0
  #counter = 1

  /** Starts the numbers of one event. Seed and number are whole, from 0 to 2^53 - 1. */
  restart(purpose: Purpose, seed: number, number: number): this {
    const salt = salts[purpose]
    this.#a = mixed(salt ^ mixed(seed + 0x3c6ef372))
    this.#b = mixed(this.#a ^ mixed(Math.floor(seed / range) + 0x1b873593))
    this.#c = mixed(this.#b ^ mixed(number + 0xdaa66d2b))
    this.#a = mixed(this.#c ^ mixed(Math.floor(number / range) + 0x78dde6e4))
    this.#counter = 1
    for (let i = 0; i < 8; i++) this.bits()
    return this
  }

  /** A whole number from 0 to 2^32 - 1. */
  bits(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum
    return sum >>> 0
  }

  /** A number from 0 to below 1. */
  fraction(): number {
    return this.bits() / range
  }

  /** A whole number from 0 to `count - 1`; count is from 1 to 2^32. */
  below(count: number): number {
    return Math.floor((this.bits() / range) * count)
  }

  /** True with a probability of 1 - 1/ratio: a ratio of 1 is never true. */
  isHot(ratio: number): boolean {
    return this.fraction() < 1 - 1 / ratio
  }
}
