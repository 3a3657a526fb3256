/** Thrown by a map view for what was not loaded yet: the runtime loads it and runs the step again, whether or not it is caught. */
export class EntryNotLoaded extends Error {
  override readonly name = 'EntryNotLoaded'
  /** The stored name. */
  readonly state: string
  /** Undefined for all entries. */
  readonly entry: string | undefined

  constructor(state: string, entry: string | undefined) {
    super(`the entries of the map state ${state} are not loaded yet: let this error pass`)
    this.state = state
    this.entry = entry
  }
}
