/**
 * The operator states of a partition's slots while its log is folded: after each line, and so after each entry, what the
 * records so far have made of them.
 */
import type { Line } from '../progress/fold.ts'
import type { KeyedProgress, SlotStates } from '../progress/progress.ts'
import { hasRecord } from './keyed-line.ts'
import type { LineSteps } from './line-steps.ts'

const none: SlotStates = {}

export class OperatorStates {
  readonly #isUsed: boolean
  readonly #before: KeyedProgress['operatorStates']
  readonly #now: Map<number, SlotStates>
  /** By the line's index. */
  readonly #after: SlotStates[] = []

  constructor(isUsed: boolean, before: KeyedProgress['operatorStates']) {
    this.#isUsed = isUsed
    this.#before = before
    this.#now = new Map(before)
  }

  /**
   * Adds the next line, whatever its step will make of it. A redriven record is not added: whether it is new its key alone
   * knows, and it may come again.
   */
  add(line: Line, index: number, steps: LineSteps): void {
    if (!this.#isUsed) return
    const before = this.#now.get(line.slot) ?? none
    const after = hasRecord(line) && line.record.redrive === undefined ? steps.operatorStates(line, before) : before
    this.#after[index] = after
    this.#now.set(line.slot, after)
  }

  /** The states of the line's slot with its record. */
  at(index: number): SlotStates {
    return this.#after[index] ?? none
  }

  /** By slot, the states after the first `entries` of the batch. */
  afterEntries(lines: readonly Line[], entries: number): KeyedProgress['operatorStates'] {
    if (!this.#isUsed) return this.#before
    const states = new Map(this.#before)
    for (const [index, { entry, slot }] of lines.entries()) {
      if (entry < entries && this.at(index) !== none) states.set(slot, this.at(index))
    }
    return states
  }
}
