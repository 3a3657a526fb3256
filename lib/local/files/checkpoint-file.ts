/**
 * The checkpoints of one event source mapping in one file, as JSON that a person can read.
 *
 * Invariants:
 * 1. The file is always whole: it is written beside itself and renamed into place.
 * 2. A save resolves only after a write that began after it; saves that meet a write in progress share the next one.
 * 3. A write that fails rejects its saves and leaves the old file; the next save writes everything again.
 */
import { readFile } from 'node:fs/promises'
import { ConfigurationError, describeError } from '../../core/errors.ts'
import type { Checkpoint, CheckpointStore } from '../../emulator/event-source-mapping/index.ts'
import { type ReplaceFile, replaceFile, writeProblem } from './replace-file.ts'

const formatVersion = 1

/**
 * @example
 * const checkpoints = new CheckpointFile('.millrace/flights/checkpoints.json')
 */
export class CheckpointFile implements CheckpointStore {
  readonly #path: string
  readonly #replace: ReplaceFile
  readonly #checkpoints = new Map<string, Checkpoint>()
  #lastWrite: Promise<void> = Promise.resolve()
  #nextWrite: Promise<void> | undefined

  /** @param replace how the file is written; by itself on the disk. */
  constructor(path: string, replace: ReplaceFile = replaceFile) {
    this.#path = path
    this.#replace = replace
  }

  /** Rejects with a ConfigurationError that names the file and the remedy when it cannot be understood. */
  async load(): Promise<ReadonlyMap<string, Checkpoint>> {
    let text: string
    try {
      text = await readFile(this.#path, 'utf8')
    } catch (thrown) {
      if ((thrown as { code?: string }).code === 'ENOENT') return new Map()
      throw new ConfigurationError(`${this.#path} cannot be read: ${describeError(thrown).message}`, { cause: thrown })
    }
    const loaded = parseCheckpoints(text, this.#path)
    this.#checkpoints.clear()
    for (const [shardId, checkpoint] of loaded) this.#checkpoints.set(shardId, checkpoint)
    return loaded
  }

  save(shardId: string, checkpoint: Checkpoint): Promise<void> {
    this.#checkpoints.set(shardId, checkpoint)
    if (this.#nextWrite === undefined) {
      const write = this.#lastWrite.then(() => {
        this.#nextWrite = undefined
        return this.#write()
      })
      this.#nextWrite = write
      // The next write waits for this one, whatever became of it.
      this.#lastWrite = write.catch(() => {})
    }
    return this.#nextWrite
  }

  async #write(): Promise<void> {
    const shards = Object.fromEntries(this.#checkpoints)
    try {
      await this.#replace(this.#path, `${JSON.stringify({ version: formatVersion, shards }, null, 2)}\n`)
    } catch (thrown) {
      throw new Error(writeProblem(this.#path, thrown), { cause: thrown })
    }
  }
}

function parseCheckpoints(text: string, path: string): ReadonlyMap<string, Checkpoint> {
  const remedy = 'delete the file to begin at the starting position again, or restore it'
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch (thrown) {
    throw new ConfigurationError(`${path} is not JSON, so the checkpoints are lost: ${remedy}.`, { cause: thrown })
  }
  const { version, shards } = (content ?? {}) as { version?: unknown; shards?: unknown }
  if (typeof version === 'number' && version > formatVersion) {
    throw new ConfigurationError(
      `${path} has format ${version}, from a newer Millrace (this one knows ${formatVersion}): update Millrace, or ${remedy}.`,
    )
  }
  if (version !== formatVersion || typeof shards !== 'object' || shards === null) {
    throw new ConfigurationError(`${path} holds no checkpoints that Millrace understands: ${remedy}.`)
  }
  const entries = Object.entries(shards)
  const broken = entries.find(([, checkpoint]) => !isCheckpoint(checkpoint))
  if (broken === undefined) return new Map(entries as [string, Checkpoint][])
  throw new ConfigurationError(`${path} has an unreadable checkpoint for ${broken[0]}: ${remedy}.`)
}

function isCheckpoint(value: unknown): value is Checkpoint {
  const { position, drained } = (value ?? {}) as { position?: Record<string, unknown> | null; drained?: unknown }
  if (typeof drained !== 'boolean' || typeof position !== 'object' || position === null) return false
  if (position.at === 'after')
    return typeof position.sequenceNumber === 'string' && /^\d+$/.test(position.sequenceNumber)
  if (position.at === 'timestamp') return Number.isFinite(position.timestampMs)
  return position.at === 'trim-horizon'
}
