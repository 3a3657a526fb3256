/** Random topologies, cut and compared with a naive oracle that asks each node, backwards, to which stages it belongs. */
import fc from 'fast-check'
import { text } from '../../lib/core/format.ts'
import { otherwise } from '../../lib/operators/branch.ts'
import { sideOutput } from '../../lib/operators/keyed/side-output.ts'
import { type Plan, plan } from '../../lib/plan/plan.ts'
import { valueState } from '../../lib/state/states.ts'
import type { GraphNode } from '../../lib/topology/graph.ts'
import { KeyedStream, type Stream } from '../../lib/topology/stream.ts'
import { Topology } from '../../lib/topology/topology.ts'

interface Step {
  readonly kind: 'map' | 'merge' | 'branch' | 'keyBy' | 'keyed'
  /** Which of the streams so far it follows. */
  readonly at: number
  readonly other: number
  /** Whether the stream also goes to a sink where something follows it. */
  readonly written: boolean
}

const anyStep: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('map', 'merge', 'branch', 'keyBy', 'keyBy', 'keyed', 'keyed', 'keyed'),
  at: fc.nat(),
  other: fc.nat(),
  written: fc.boolean(),
})

/** Builds what the steps say, where they can be said, and sends every loose end to the one sink. */
function build(sources: number, steps: readonly Step[]): Topology {
  const app = new Topology('app')
  const sink = app.sink<string>('out')
  const streams: Stream<string>[] = Array.from({ length: sources }, (_, i) => app.source(`source-${i}`, text()))
  const followed = new Set<Stream<string>>()
  for (const [index, { kind, at, other, written }] of steps.entries()) {
    const stream = streams[at % streams.length] as Stream<string>
    const second = streams[other % streams.length] as Stream<string>
    const made = grow(kind, `step-${index}`, stream, second)
    if (made.length > 0) followed.add(stream)
    if (made.length > 0 && kind === 'merge') followed.add(second)
    if (made.length > 0 && written) stream.to(sink)
    streams.push(...made)
  }
  for (const stream of streams) if (!followed.has(stream)) stream.to(sink)
  return app
}

function grow(kind: Step['kind'], name: string, stream: Stream<string>, other: Stream<string>): Stream<string>[] {
  if (kind === 'map') return [stream.map((line) => line)]
  if (kind === 'merge') return stream === other ? [] : [stream.merge(other)]
  if (kind === 'branch') return Object.values(stream.branch({ a: () => true, b: otherwise }))
  if (kind === 'keyBy') return [stream.keyBy(name, (line) => line)]
  if (!(stream instanceof KeyedStream)) return []
  const keyed = (stream as KeyedStream<string>).process(name, {
    state: { last: valueState<string>() },
    sides: { odd: sideOutput<string>() },
    step: (line) => [line],
  })
  return [keyed, keyed.sides.odd]
}

/** The rule, told backwards: a node is where its inputs are, except that a cut begins a stage and ends those before it. */
class Oracle {
  readonly #nodes: readonly GraphNode[]

  constructor(nodes: readonly GraphNode[]) {
    this.#nodes = nodes
  }

  isCut(node: GraphNode): boolean {
    return node.type === 'key-by' && this.#nodes.some((other) => other.type === 'keyed' && other.input === node)
  }

  stagesOf(node: GraphNode): ReadonlySet<string> {
    if (node.type === 'source') return new Set([node.name])
    const inputs = node.type === 'merge' ? node.inputs : [node.input]
    const before = new Set(inputs.flatMap((input) => (this.isCut(input) ? [nameOf(input)] : [...this.stagesOf(input)])))
    return this.isCut(node) ? before.add(nameOf(node)) : before
  }
}

const nameOf = (node: GraphNode): string => (node.type === 'source' || node.type === 'key-by' ? node.name : '')

const anyPlan = fc
  .tuple(fc.integer({ min: 1, max: 3 }), fc.array(anyStep, { maxLength: 14 }))
  .map(([sources, steps]): Plan => plan(build(sources, steps)))

test('every node is in exactly the stages that it should be in, once', () => {
  fc.assert(
    fc.property(anyPlan, ({ graph, stages }) => {
      const oracle = new Oracle(graph.nodes)
      for (const node of graph.nodes) {
        const found = stages.filter((stage) => stage.nodes.includes(node)).map((stage) => stage.name)
        expect(new Set(found)).toEqual(oracle.stagesOf(node))
      }
      for (const { nodes } of stages) expect(new Set(nodes).size).toBe(nodes.length)
    }),
  )
})

test('there is one stage per source and per cut, each of its kind, which begins with its entry', () => {
  fc.assert(
    fc.property(anyPlan, ({ graph, stages }) => {
      const oracle = new Oracle(graph.nodes)
      const entries = graph.nodes.filter((node) => node.type === 'source' || oracle.isCut(node))
      expect(new Set(stages.map((stage) => stage.entry))).toEqual(new Set(entries))
      expect(stages).toHaveLength(entries.length)
      for (const { kind, entry, nodes, feeds } of stages) {
        expect(nodes[0]).toBe(entry)
        const source = feeds.length === 0 ? 'stateless' : 'feeding'
        expect(kind).toBe(entry.type === 'key-by' ? 'keyed' : source)
        expect(nodes.some((node) => node.type === 'keyed')).toBe(kind === 'keyed')
      }
    }),
  )
})

test('a stage feeds the cuts at which it ends, both sides know of it, and what is fed comes later', () => {
  fc.assert(
    fc.property(anyPlan, ({ graph, stages }) => {
      const oracle = new Oracle(graph.nodes)
      for (const [at, { name, entry, nodes, feeds }] of stages.entries()) {
        const ends = nodes.filter((node) => node !== entry && oracle.isCut(node))
        expect(feeds.map((feed) => feed.keyBy)).toEqual(ends)
        for (const feed of feeds) {
          const fed = stages.findIndex((stage) => stage.name === feed.stage)
          expect(fed).toBeGreaterThan(at)
          expect(stages[fed]).toMatchObject({ kind: 'keyed', slots: feed.slots })
        }
        const fedBy = stages.filter((stage) => stage.feeds.some((feed) => feed.stage === name))
        const [stage] = stages.slice(at)
        if (stage?.kind === 'keyed') expect(stage.fedBy).toEqual(fedBy.map((other) => other.name))
        else expect(fedBy).toEqual([])
      }
    }),
  )
})

test('a keyed stage has the states of its own operators', () => {
  fc.assert(
    fc.property(anyPlan, (planned) => {
      for (const stage of planned.stages) {
        if (stage.kind !== 'keyed') continue
        const own = stage.nodes.flatMap((node) => (node.type === 'keyed' ? [`${node.name}.last`] : []))
        expect([...stage.states.keys()]).toEqual(own)
      }
    }),
  )
})
