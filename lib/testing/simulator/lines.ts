/** What travels to the keyed stages of the application without time. */

export interface Line {
  readonly line: string
  readonly user: string
  readonly item: string
  readonly cents: number
  /** What the line does to the user's map of items. */
  readonly does: 'add' | 'remove' | 'audit'
  /** What the step does that meets it. */
  readonly fails: 'never' | 'always' | 'for good' | 'behind the key' | 'kills'
}
