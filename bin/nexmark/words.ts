/** Text as Nexmark's events carry it: words with a filler here and there, and letters that make an event as long as wanted. */
import type { Random } from './random.ts'

const a = 'a'.charCodeAt(0)
const letters = 26
/** One character in so many is the filler. */
const fillerEvery = 13
/** Draws for a character of a word: the first 26 of so many are the filler. */
const choices = letters * fillerEvery
/** One draw of 32 bits is enough for so many characters. */
const wordCharactersPerDraw = 3
const lettersPerDraw = 6
const wordRange = choices ** wordCharactersPerDraw
const letterRange = letters ** lettersPerDraw

const scratch = Buffer.allocUnsafe(4_096)

/** A word of 3 to `limit - 1` characters: a to z, or the filler with a probability of 1/13. Spaces at its ends are cut off. */
export function word(random: Random, limit: number, filler: ' ' | '_'): string {
  const fillerCode = filler.charCodeAt(0)
  const length = 3 + random.below(limit - 3)
  let drawn = 0
  for (let i = 0; i < length; i++) {
    drawn = i % wordCharactersPerDraw === 0 ? random.below(wordRange) : Math.floor(drawn / choices)
    const choice = drawn % choices
    scratch[i] = choice < letters ? fillerCode : a + (choice % letters)
  }
  return scratch.toString('latin1', 0, length).trim()
}

/** So many letters from a to z. */
export function filling(random: Random, length: number): string {
  const bytes = length <= scratch.length ? scratch : Buffer.allocUnsafe(length)
  let drawn = 0
  for (let i = 0; i < length; i++) {
    drawn = i % lettersPerDraw === 0 ? random.below(letterRange) : Math.floor(drawn / letters)
    bytes[i] = a + (drawn % letters)
  }
  return bytes.toString('latin1', 0, length)
}

/**
 * Letters that bring an event to its nominal size on average: what is left of it, give or take a fifth. Empty where the
 * event is larger already.
 */
export function extra(random: Random, usedBytes: number, nominalBytes: number): string {
  if (usedBytes > nominalBytes) return ''
  const room = nominalBytes - usedBytes
  const spread = Math.round(0.2 * room)
  return filling(random, room - spread + (spread === 0 ? 0 : random.below(2 * spread)))
}
