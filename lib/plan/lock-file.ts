/** The text of `millrace.lock.json`: every application of a repository, sorted, so that a diff shows what was changed. */
import { ConfigurationError, describeError } from '../core/errors.ts'
import type { SinkLock, TopologyLock } from './lock.ts'

/** What the file is called where nobody says otherwise: it lies beside cdk.json. */
export const defaultLockFile = 'millrace.lock.json'

/** The format version of the file. */
const formatVersion = 1

export interface LockedTopology extends TopologyLock {
  /** The file that declares the topology, relative to the lock file. */
  readonly file: string
}

/** Topologies by name. */
export type Lock = ReadonlyMap<string, LockedTopology>

/** The one text of a lock. */
export function lockText(lock: Lock): string {
  const topologies = Object.fromEntries([...lock].sort(([a], [b]) => (a < b ? -1 : 1)))
  return `${JSON.stringify(sortedDeep({ formatVersion, topologies }), undefined, 2)}\n`
}

function sortedDeep(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, inner]) => [name, sortedDeep(inner)]))
}

/**
 * Reads what {@link lockText} wrote. Throws a {@link ConfigurationError} that names the file where it is not such a text, or one
 * of a newer release.
 */
export function parseLock(text: string, path: string): Lock {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new ConfigurationError(
      `${path} is not JSON (${describeError(error).message}): put it back from version control, or resolve what a merge left in it.`,
      { cause: error },
    )
  }
  const { formatVersion: found, topologies } = (value ?? {}) as Readonly<Record<string, unknown>>
  if (typeof found === 'number' && found > formatVersion) {
    throw new ConfigurationError(
      `${path} has the format version ${found}, and this release of Millrace reads up to ${formatVersion}: use the release that wrote it, or a later one.`,
    )
  }
  if (found !== formatVersion || !isRecordOf(topologies, isTopology)) {
    throw new ConfigurationError(
      `${path} is not what \`millrace lock\` writes: put it back from version control, and let \`millrace lock\` change it.`,
    )
  }
  return new Map(Object.entries(topologies))
}

type Fields = Readonly<Record<string, unknown>>
type Is<T> = (value: unknown) => value is T

function isRecordOf<T>(value: unknown, is: Is<T>): value is Readonly<Record<string, T>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(is)
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isVersion = (value: unknown): boolean => Number.isInteger(value) && (value as number) > 0

function isTopology(value: unknown): value is LockedTopology {
  const { file, sinks, stages } = (value ?? {}) as Fields
  return isText(file) && isRecordOf(sinks, isSink) && isRecordOf(stages, isStage)
}

const isSink = (value: unknown): value is SinkLock => isRecordOf(value, (_): _ is never => false)

function isStage(value: unknown): value is TopologyLock['stages'][string] {
  const { kind, slots, valueVersion, operators } = (value ?? {}) as Fields
  if (kind !== 'keyed') return kind === 'source'
  return isVersion(slots) && isVersion(valueVersion) && isRecordOf(operators, isOperator)
}

function isOperator(value: unknown): value is object {
  const { kind, window, graceMs, aggregators, states } = (value ?? {}) as Fields
  return (
    isText(kind) &&
    (window === undefined || isText(window)) &&
    (graceMs === undefined || Number.isInteger(graceMs)) &&
    (aggregators === undefined || isText(aggregators) || isRecordOf(aggregators, isText)) &&
    isRecordOf(states, isState)
  )
}

function isState(value: unknown): value is object {
  const { kind, version } = (value ?? {}) as Fields
  return isText(kind) && isVersion(version)
}
