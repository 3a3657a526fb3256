import type { KeyedOperator } from '../operators/keyed/keyed-operator.ts'
import { exactSpan } from '../time/time-span.ts'
import { consumersOf, type Graph, type GraphNode, labelOf } from './graph.ts'

/** Prints a graph for people: an indented tree per source, or a Mermaid flowchart. */
export function describeGraph(graph: Graph, format: 'text' | 'mermaid'): string {
  return format === 'mermaid' ? mermaid(graph) : text(graph)
}

/** What a node's line says beside its label. */
function detailsOf(node: GraphNode, consumers: readonly GraphNode[]): string {
  if (node.type === 'source') {
    const time = node.eventTime ? `event time ${node.eventTime.unit}` : 'event time on arrival'
    return ` (${node.format.name}${node.schema ? `, validated by ${node.schema['~standard'].vendor}` : ''}, ${time})`
  }
  if (node.type === 'keyed') return ` (${stateDetails(node.operator)})`
  const isCut = node.type === 'key-by' && consumers.some((next) => next.type === 'keyed')
  return isCut ? ` (${node.slots} ${node.slots === 1 ? 'slot' : 'slots'})` : ''
}

/** Such as `keeps totals.last (value), totals.seen (operator)`; of a window, `tumbling(5 min), grace 0 s, emits final`. */
function stateDetails({ states, operatorStates, emits, window }: KeyedOperator): string {
  if (window !== undefined) {
    const grace = window.hasLate ? `, grace ${exactSpan(window.graceMs)}` : ''
    // What is recorded says ms, and stays as it is.
    const label = window.label.replaceAll(/(\d+) ms/g, (_, ms) => exactSpan(Number(ms)))
    return `${label}${grace}, emits ${window.emit}`
  }
  const kept = [...states, ...operatorStates].map(([storedName, { kind }]) => `${storedName} (${kind})`)
  return `keeps ${kept.join(', ')}${emits === 'latest' ? '; emits per batch' : ''}`
}

function text(graph: Graph): string {
  const consumers = consumersOf(graph)
  const lines = [`topology "${graph.name}"`]
  const seen = new Set<GraphNode>()
  const walk = (node: GraphNode, depth: number): void => {
    const indent = '  '.repeat(depth)
    // A merge is reached once per input; what follows it is told once.
    if (seen.has(node)) return void lines.push(`${indent}${labelOf(node)} (as above)`)
    seen.add(node)
    const after = consumers.get(node) ?? []
    lines.push(`${indent}${labelOf(node)}${detailsOf(node, after)}`)
    for (const next of after) walk(next, depth + 1)
  }
  for (const source of graph.sources) walk(source, 1)
  return lines.join('\n')
}

/** Text that Mermaid takes as it is, whatever brackets or bars a table or an arm has in its name. */
const quoted = (label: string): string => `"${label.replaceAll('"', "'").replaceAll(/\s+/g, ' ')}"`

/** Drawn as ways out of the node before them. */
const isWayOut = (node: GraphNode) => node.type === 'arm' || node.type === 'side'

function mermaid(graph: Graph): string {
  const consumers = consumersOf(graph)
  const ids = new Map(graph.nodes.map((node, index) => [node, `n${index}`]))
  const shape = (node: GraphNode): string => {
    const label = quoted(labelOf(node))
    if (node.type === 'source') return `([${label}])`
    if (node.type === 'branch') return `{${label}}`
    if (node.type === 'keyed') return `[[${label}]]`
    return `[${label}]`
  }
  const sinkId = (name: string) => `sink-${name}`
  const drawn = graph.nodes.filter((node) => node.type !== 'to' && !isWayOut(node))
  const lines = ['flowchart LR', ...drawn.map((node) => `  ${ids.get(node)}${shape(node)}`)]
  lines.push(...graph.sinks.map((sink) => `  ${sinkId(sink.name)}[("sink '${sink.name}'")]`))
  for (const node of graph.nodes) {
    for (const next of consumers.get(node) ?? []) {
      if (isWayOut(next)) continue
      const [from, arrow] =
        node.type === 'arm' || node.type === 'side'
          ? [ids.get(node.input), `-->|${quoted(node.name)}|`]
          : [ids.get(node), '-->']
      lines.push(`  ${from} ${arrow} ${next.type === 'to' ? sinkId(next.sink.name) : ids.get(next)}`)
    }
  }
  return lines.join('\n')
}
