/** Handles of sources and sinks: what users bind and test by type, never by string. */
import type { SinkDeclaration, SourceNode } from './graph.ts'

declare const recordType: unique symbol

/** A sink of a topology, to be bound, sent to with `stream.to(sink)` and read in tests. `T` is what it receives. */
export interface SinkHandle<in out T> {
  readonly type: 'sink'
  readonly name: string
  readonly declaration: SinkDeclaration
  readonly [recordType]?: (value: T) => T
}

/** A source of a topology, to be bound and sent to in tests. `I` is what the wire carries, before validation. */
export interface SourceHandle<in out I> {
  readonly type: 'source'
  readonly name: string
  readonly declaration: SourceNode
  readonly [recordType]?: (value: I) => I
}
