/**
 * Which event source mappings of a local run are enabled. Other processes ask for it in one file and read in another what became of it,
 * as one does on AWS with `UpdateEventSourceMapping` and the state of the mapping.
 *
 * 1. `disabled.json` names the stages that are to be disabled. It outlives the run: what was paused stays so in the next one.
 * 2. `stages.json` says what the run's stages are bound to and the state of their mappings. It stays behind the run, and then
 *    describes it to whoever reads the tables.
 * 3. 'Disabled' is said when nothing of the mapping is in flight any more and its checkpoints are saved: then they may be changed.
 * 4. A file that cannot be read changes nothing.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import { ConfigurationError, describeError } from '../../core/errors.ts'
import type { StageBindings } from '../../plan/stage-bindings.ts'
import { replaceFile } from './replace-file.ts'

export type LocalMappingState = 'Enabled' | 'Enabling' | 'Disabled' | 'Disabling'

/** A stage as `stages.json` describes it. */
export interface DescribedStage {
  readonly bindings: StageBindings
  readonly state: LocalMappingState
}

/** What `stages.json` holds. */
export interface DescribedRun {
  /** The process that wrote it. */
  readonly pid: number
  /** Each behind those that feed it. */
  readonly stages: readonly DescribedStage[]
}

/** The part of a stage that is switched. */
export interface SwitchedStage {
  readonly name: string
  readonly bindings: StageBindings
  enable(): Promise<void>
  /** Resolves when nothing is in flight and the checkpoints are saved. */
  disable(): Promise<void>
}

export interface MappingSwitchesOptions {
  readonly directory: string
  readonly stages: readonly SwitchedStage[]
  readonly clock: Clock
  /** Hears why the files could not be read or written; they are tried again. */
  readonly onProblem: (reason: string) => void
}

const formatVersion = 1
const pollMs = 200

const disabledFile = (directory: string): string => join(directory, 'disabled.json')
const stagesFile = (directory: string): string => join(directory, 'stages.json')

/** The names of the stages that are to be disabled. Throws a ConfigurationError for a file that is not what this release writes. */
export async function readDisabled(directory: string): Promise<readonly string[]> {
  const path = disabledFile(directory)
  const found = await readJson(path)
  if (found === undefined) return []
  const { formatVersion: version, stages } = found
  if (version === formatVersion && Array.isArray(stages) && stages.every((name) => typeof name === 'string'))
    return stages
  throw new ConfigurationError(`${path} does not say which stages are disabled: delete it, and all are enabled.`)
}

export const writeDisabled = (directory: string, stages: readonly string[]): Promise<void> =>
  replaceFile(disabledFile(directory), `${JSON.stringify({ formatVersion, stages })}\n`)

/** What the last run in a directory said of itself; undefined where none did. */
export async function readDescribedRun(directory: string): Promise<DescribedRun | undefined> {
  const found = await readJson(stagesFile(directory))
  if (found?.formatVersion !== formatVersion) return undefined
  return found as unknown as DescribedRun
}

/**
 * Switches the mappings of a run as the file says, until it is stopped.
 *
 * @example
 * const switches = new MappingSwitches({ directory, stages, clock: systemClock, onProblem })
 * await switches.start() // enables what is not disabled
 */
export class MappingSwitches {
  readonly #options: MappingSwitchesOptions
  readonly #states = new Map<string, LocalMappingState>()
  readonly #stop = new AbortController()
  #watching: Promise<void> | undefined
  #problem: string | undefined

  constructor(options: MappingSwitchesOptions) {
    this.#options = options
    for (const { name } of options.stages) this.#states.set(name, 'Disabled')
  }

  /** Resolves when every stage that is not to be disabled is enabled. */
  async start(): Promise<void> {
    await this.#apply(await readDisabled(this.#options.directory))
    await this.#describe()
    this.#watching ??= this.#watch()
  }

  /** Ends the watching; mappings stay as they are. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#watching
  }

  async #watch(): Promise<void> {
    const { clock, directory, onProblem } = this.#options
    const { signal } = this.#stop
    while (!signal.aborted) {
      await clock.sleep(pollMs, signal)
      if (signal.aborted) return
      try {
        await this.#apply(await readDisabled(directory))
        this.#problem = undefined
      } catch (error) {
        const { message } = describeError(error)
        if (message !== this.#problem) onProblem(message)
        this.#problem = message
      }
    }
  }

  async #apply(disabled: readonly string[]): Promise<void> {
    const changed = this.#options.stages.filter(
      ({ name }) => (this.#states.get(name) === 'Disabled') !== disabled.includes(name),
    )
    if (changed.length === 0) return
    const to = (name: string) => (disabled.includes(name) ? ('Disabled' as const) : ('Enabled' as const))
    for (const { name } of changed) this.#states.set(name, to(name) === 'Disabled' ? 'Disabling' : 'Enabling')
    await this.#describe()
    await Promise.all(
      changed.map(async (stage) => {
        await (to(stage.name) === 'Disabled' ? stage.disable() : stage.enable())
        this.#states.set(stage.name, to(stage.name))
      }),
    )
    await this.#describe()
  }

  #describe(): Promise<void> {
    const { directory, stages } = this.#options
    const described = stages.map(({ name, bindings }) => ({ bindings, state: this.#states.get(name) }))
    const run = { formatVersion, pid: process.pid, stages: described }
    return replaceFile(stagesFile(directory), `${JSON.stringify(run, null, 2)}\n`)
  }
}

async function readJson(path: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === 'ENOENT') return undefined
    return {}
  }
}
