/** Where a run's time goes: a CPU profile of it, summed up by the part of Millrace that the time is spent in or for. */
import { Session } from 'node:inspector/promises'

export const parts = ['decode', 'step', 'frames', 'state', 'publish', 'progress', 'rest', 'garbage'] as const
export type Part = (typeof parts)[number]

/** The shares of the parts, and the functions that take most, each from 0 to 1. */
export interface TimeShares {
  readonly parts: Readonly<Record<Part, number>>
  readonly functions: readonly { readonly name: string; readonly share: number }[]
}

/** The first that a file's place fits says what its time is spent for. */
const places: readonly (readonly [RegExp, Part])[] = [
  [/\/lib\/(core\/(format|utf8|record|lossless)|runtime\/decode|time\/event-time)\.ts$/, 'decode'],
  [/\/lib\/runtime\/(frames\/|feed-lane|mark-teller)/, 'frames'],
  [/\/lib\/core\/slot\.ts$/, 'frames'],
  [/\/lib\/(state\/|runtime\/keyed\/(key-loading|warm-keys|in-parallel|declared-entries))/, 'state'],
  [/\/lib\/runtime\/progress|\/lib\/runtime\/announcer\//, 'progress'],
  [/\/lib\/runtime\/(outbox|lane|latest-only|sinks)\.ts$|\/bin\/nexmark\//, 'publish'],
  [/\/(lib|functions|bench)\//, 'step'],
]

interface ProfileNode {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  readonly children?: readonly number[]
}

/** Runs under the profiler. */
export async function profiled(run: () => Promise<void>): Promise<TimeShares> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: 500 })
  await session.post('Profiler.start')
  await run()
  const { profile } = await session.post('Profiler.stop')
  session.disconnect()
  return sharesOf(profile.nodes, profile.samples ?? [], profile.timeDeltas ?? [])
}

function sharesOf(
  nodes: readonly ProfileNode[],
  samples: readonly number[],
  timeDeltas: readonly number[],
): TimeShares {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const partOf = partsOf(nodes, byId)
  const partTimes = new Map<Part, number>()
  const functionTimes = new Map<string, number>()
  let total = 0
  for (const [i, id] of samples.entries()) {
    const { callFrame } = byId.get(id) as ProfileNode
    if (callFrame.functionName === '(idle)' || isProfiler(callFrame)) continue
    const time = timeDeltas[i] as number
    const part = partOf.get(id) as Part
    const name = nameOf(callFrame)
    partTimes.set(part, (partTimes.get(part) ?? 0) + time)
    functionTimes.set(name, (functionTimes.get(name) ?? 0) + time)
    total += time
  }
  const shares = parts.map((part) => [part, (partTimes.get(part) ?? 0) / total] as const)
  const functions = [...functionTimes].map(([name, time]) => ({ name, share: time / total }))
  return {
    parts: Object.fromEntries(shares) as Record<Part, number>,
    functions: functions.toSorted((a, b) => b.share - a.share),
  }
}

/** What belongs to no part itself, such as a function of Node, belongs to that of its caller. */
function partsOf(nodes: readonly ProfileNode[], byId: ReadonlyMap<number, ProfileNode>): ReadonlyMap<number, Part> {
  const found = new Map<number, Part>()
  const visit = (node: ProfileNode, callers: Part): void => {
    const own = ownPart(node) ?? callers
    found.set(node.id, own)
    for (const child of node.children ?? []) visit(byId.get(child) as ProfileNode, own)
  }
  const [root] = nodes
  if (root) visit(root, 'rest')
  return found
}

/** Starting and stopping the profiler takes time of its own. */
const isProfiler = ({ url }: ProfileNode['callFrame']): boolean => url.startsWith('node:inspector')

function ownPart({ callFrame }: ProfileNode): Part | undefined {
  if (callFrame.functionName === '(garbage collector)') return 'garbage'
  return places.find(([place]) => place.test(callFrame.url))?.[1]
}

function nameOf({ functionName, url, lineNumber }: ProfileNode['callFrame']): string {
  const file = url.replace(/^.*\/(?=(lib|bin|functions|bench)\/)/, '')
  const place = url === '' ? '' : ` (${file}:${lineNumber + 1})`
  return `${functionName || 'anonymous'}${place}`
}
