import type { RenderedProperties } from './rendered.ts'

/** What is refused of one property of a mapping. */
export interface MappingRule {
  readonly property: string
  /** Whether only a stage that keeps progress refuses it: one that is keyed, or feeds a keyed one. */
  readonly whereOrderCounts?: true
  isBroken(value: unknown, mapping: RenderedProperties): boolean
  /** Why it is refused, and what to do. */
  readonly remedy: string
}
