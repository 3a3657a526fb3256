/** The cells that the step at hand has changed, or brought to our schema version: enough to take the step back. */
import type { StateCell } from './state-cell.ts'
import type { StepChange } from './step-changes.ts'

/** A cell that was brought to our version, and what it was. */
interface Upcast {
  readonly cell: StateCell
  readonly value: unknown
  readonly version: number
}

export class StepCells {
  /** Counts the steps, so that a cell knows whether the one at hand changed it already. */
  #step = 0
  /** The first `#size` of these are what the step at hand changed: to empty the array would cost an allocation per step. */
  readonly #changed: StateCell[] = []
  #size = 0
  readonly #upcasts: Upcast[] = []

  /** A step begins. */
  begin(): void {
    this.#step += 1
  }

  /** Whether the step at hand changed any. */
  get isChanging(): boolean {
    return this.#size > 0
  }

  /** Brings a cell to our version. Throws as {@link StateCell.makeReady}. */
  makeReady(cell: StateCell): void {
    const { value, version } = cell
    cell.makeReady()
    if (cell.version !== version) this.#upcasts.push({ cell, value, version })
  }

  /** Notes that the step changes the cell. */
  note(cell: StateCell): StateCell {
    if (cell.begin(this.#step)) {
      this.#changed[this.#size] = cell
      this.#size += 1
    }
    return cell
  }

  /** Adds the entries of map states that the step changed. */
  addEntriesTo(entries: Set<StateCell>): Set<StateCell> {
    for (let i = 0; i < this.#size; i += 1) {
      const cell = this.#changed[i] as StateCell
      if (cell.place.entry !== undefined) entries.add(cell)
    }
    return entries
  }

  /** What the step changed so far. */
  changes(): StepChange[] {
    const changes: StepChange[] = []
    for (let i = 0; i < this.#size; i += 1) {
      const cell = this.#changed[i] as StateCell
      changes.push({ place: cell.place, value: cell.encoded() })
    }
    return changes
  }

  /** All cells are as before the step. To be called before `end`. */
  rollback(): void {
    for (let i = 0; i < this.#size; i += 1) this.#changed[i]?.rollback()
    for (const { cell, value, version } of this.#upcasts) cell.undoUpcast(value, version)
  }

  /** The step is done, or taken back. */
  end(): void {
    this.#size = 0
    if (this.#upcasts.length > 0) this.#upcasts.length = 0
  }
}
