import { consumersOf, type Graph, type GraphNode, labelOf } from './graph.ts'

/** Prints a graph for people: an indented tree per source, or a Mermaid flowchart. */
export function describeGraph(graph: Graph, format: 'text' | 'mermaid'): string {
  return format === 'mermaid' ? mermaid(graph) : text(graph)
}

const sourceDetails = (node: GraphNode): string => {
  if (node.type !== 'source') return ''
  const time = node.eventTime ? `event time ${node.eventTime.unit}` : 'event time on arrival'
  return ` (${node.format.name}${node.schema ? `, validated by ${node.schema['~standard'].vendor}` : ''}, ${time})`
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
    if (node.type !== 'branch') lines.push(`${indent}${labelOf(node)}${sourceDetails(node)}`)
    else lines.push(`${indent}branch`)
    for (const next of consumers.get(node) ?? []) walk(next, depth + 1)
  }
  for (const source of graph.sources) walk(source, 1)
  return lines.join('\n')
}

/** Text that Mermaid takes as it is, whatever brackets or bars a table or an arm has in its name. */
const quoted = (label: string): string => `"${label.replaceAll('"', "'").replaceAll(/\s+/g, ' ')}"`

function mermaid(graph: Graph): string {
  const ids = new Map(graph.nodes.map((node, index) => [node, `n${index}`]))
  const shape = (node: GraphNode): string => {
    const label = quoted(labelOf(node))
    if (node.type === 'source') return `([${label}])`
    if (node.type === 'branch') return `{${label}}`
    return `[${label}]`
  }
  const sinkId = (name: string) => `sink-${name}`
  const drawn = graph.nodes.filter((node) => node.type !== 'to' && node.type !== 'arm')
  const lines = ['flowchart LR', ...drawn.map((node) => `  ${ids.get(node)}${shape(node)}`)]
  lines.push(...graph.sinks.map((sink) => `  ${sinkId(sink.name)}[("sink '${sink.name}'")]`))
  for (const node of graph.nodes) {
    for (const next of consumersOf(graph).get(node) ?? []) {
      if (node.type === 'branch') continue
      const from = node.type === 'arm' ? ids.get(node.input) : ids.get(node)
      const arrow = node.type === 'arm' ? `-->|${quoted(node.name)}|` : '-->'
      lines.push(`  ${from} ${arrow} ${next.type === 'to' ? sinkId(next.sink.name) : ids.get(next)}`)
    }
  }
  return lines.join('\n')
}
