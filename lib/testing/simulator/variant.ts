/** What is drawn of an application, and what its source's records are: known to those who build it. */
import type { PlanChanges } from './faults.ts'

/** What one record of the source is. */
export interface SourceItem {
  /** The partition key: records of one account keep their order. */
  readonly account: string
  readonly bytes: Uint8Array
}

/** What is drawn of an application, beside its source. */
export interface Variant {
  readonly hasThirdStage: boolean
  /** Whether states with a TTL of every kind are kept beside the others. */
  readonly hasBriefs: boolean
  readonly changes: PlanChanges
  /** Whether the first version runs on the release of Millrace before this one: what that one did otherwise is left out. */
  readonly mixesReleases: boolean
  /** Ends the process that runs the step at hand. */
  readonly kill: () => void
}
