/**
 * `millrace lock --check --stack`: what is about to be deployed, beside what is deployed. The lock file knows what was recorded; the stack
 * knows what runs, and the tables what was ever kept in them. It only reads.
 *
 * 1. A stage or a sink that is deployed and not declared any more is a problem, as is one of another kind or with other slots.
 * 2. A state is compared with the manifest of its table, which forgets none: of another kind, its values would be misread. One that is not
 *    declared any more harms nobody, so that its removal is left to the lock file.
 */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { createDynamoDBClient } from '../../lib/aws/clients/dynamodb.ts'
import { DynamoDBStateStore } from '../../lib/aws/state-table/store.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import { Closing } from '../../lib/local/closing.ts'
import { localDynamoDBClient } from '../../lib/local/run/tables.ts'
import { compareLock, compareState, type LockProblem, type StageLock, type TopologyLock } from '../../lib/plan/lock.ts'
import type { StageBindings } from '../../lib/plan/stage-bindings.ts'
import { misreadState, recordedIn, type StatesOfManifest, statesOf } from '../../lib/runtime/recorded-states.ts'
import type { Say } from './command.ts'
import { orderedStages } from './operate/operated.ts'
import { deployedBindings } from './operate/operated-stack.ts'
import { counted } from './words.ts'

export interface CheckedStack {
  readonly stack: string
  readonly endpoint: string | undefined
}

/** What the table of a keyed stage says of itself. */
type Manifest = StatesOfManifest & {
  readonly topology: string
  readonly stage: string
  readonly slots: number
}

interface DeployedStage {
  readonly name: string
  readonly kind: StageLock['kind']
  readonly slots: number
  /** Undefined where nothing was ever kept. */
  readonly manifest: Manifest | undefined
}

const answerMs = 15_000

/**
 * Throws a ConfigurationError that names all that a deployment of these topologies to the stack would lose or misread, but for what is
 * accepted. Resolves with the accepted names that were needed.
 */
export async function compareWithStack(
  { stack, endpoint }: CheckedStack,
  topologies: ReadonlyMap<string, TopologyLock>,
  accepted: ReadonlySet<string>,
  say: Say,
): Promise<readonly string[]> {
  const closing = new Closing()
  try {
    const all = await bindingsIn(stack, endpoint, closing)
    if (all === undefined) {
      say(`There is no stack ${stack}: nothing is deployed that could be lost.`)
      return []
    }
    const client = endpoint === undefined ? createDynamoDBClient() : localDynamoDBClient(endpoint)
    closing.defer(() => client.destroy())
    const problems: LockProblem[] = []
    const lines: string[] = []
    for (const [topology, bindings] of Map.groupBy(all, (one) => one.topology)) {
      const current = topologies.get(topology)
      if (current === undefined) problems.push(unknownApplication(topology, stack))
      else problems.push(...(await problemsOf(topology, current, bindings, client)))
      lines.push(
        `${topology} (stack ${stack}): ${counted(bindings.length, 'deployed stage')} compared, nothing is lost`,
      )
    }
    const refused = problems.filter(({ name }) => !accepted.has(name))
    if (refused.length > 0) throw wouldLose(stack, refused)
    for (const line of lines) say(line)
    return problems.map(({ name }) => name)
  } finally {
    await closing.close()
  }
}

const wouldLose = (stack: string, problems: readonly LockProblem[]) =>
  new ConfigurationError(
    [
      `a deployment would lose or misread what stack ${stack} keeps:`,
      ...problems.map(({ message }) => `- ${message}`),
      `What is meant to go is drained first, and then accepted by its name: \`millrace lock --check --stack ${stack} --accept NAME\`.`,
    ].join('\n'),
  )

const unknownApplication = (topology: string, stack: string): LockProblem => ({
  name: topology,
  message: `stack ${stack} runs topology "${topology}", which the lock file does not know: where it was renamed, keep its name, as all that it keeps has that; where it is another repository's, accept it.`,
})

/** Undefined where there is no such stack, as before the first deployment. */
async function bindingsIn(stack: string, endpoint: string | undefined, closing: Closing) {
  try {
    return await deployedBindings({ stack, endpoint }, closing)
  } catch (error) {
    const { message } = describeError((error as Error).cause)
    if (/^Stack with id .* does not exist/.test(message)) return undefined
    throw error
  }
}

async function problemsOf(
  topology: string,
  current: TopologyLock,
  bindings: readonly StageBindings[],
  client: DynamoDBClient,
): Promise<readonly LockProblem[]> {
  const stages: DeployedStage[] = []
  for (const { name, kind, slots = 0, bindings: own } of orderedStages(bindings)) {
    if (kind === 'keyed') {
      const manifest = await manifestOf(name, own, client)
      stages.push({ name, kind, slots: manifest?.slots ?? slots, manifest })
    } else stages.push({ name, kind: 'source', slots, manifest: undefined })
  }
  const sinks = bindings.flatMap((one) => one.sinks.map(({ name }) => [name, {}] as const))
  const deployed = {
    sinks: Object.fromEntries(sinks),
    stages: Object.fromEntries(stages.map((stage) => [stage.name, lockOfDeployed(stage, current)])),
  }
  return [...compareLock(deployed, current), ...stages.flatMap((stage) => misreadBy(topology, stage, current))]
}

async function manifestOf(
  stage: string,
  { state }: StageBindings,
  client: DynamoDBClient,
): Promise<Manifest | undefined> {
  const tableName = state?.tableName ?? ''
  const store = new DynamoDBStateStore({ client, tableName, stage, clock: systemClock })
  try {
    return (await store.readManifest(AbortSignal.timeout(answerMs))) as Manifest | undefined
  } catch (error) {
    const why = describeError(error).message.split('\n')[0]
    throw new ConfigurationError(`The manifest of stage "${stage}" in its table ${tableName} cannot be read: ${why}`, {
      cause: error,
    })
  }
}

/** What is deployed, as far as a lock would say it: of operators only those of a stage that goes, for what is lost with it. */
function lockOfDeployed({ name, kind, slots, manifest }: DeployedStage, current: TopologyLock): StageLock {
  if (kind === 'source') return { kind }
  const now = stageIn(current, name)
  const states = manifest?.states ?? {}
  const operators = now === undefined ? { [name]: { kind: 'operator', states } } : {}
  return { kind, slots, valueVersion: now?.kind === 'keyed' ? now.valueVersion : 1, operators }
}

/** Of a stage that goes on: what of its table it would take for something else. */
function misreadBy(topology: string, { name, manifest }: DeployedStage, current: TopologyLock): readonly LockProblem[] {
  const now = stageIn(current, name)
  if (manifest === undefined || now?.kind !== 'keyed') return []
  if (manifest.topology !== topology || manifest.stage !== name) {
    const message = `the table of stage "${name}" holds the state of stage "${manifest.stage}" of "${manifest.topology}": bind it to that stage, or give this one a table of its own.`
    return [{ name, message }]
  }
  const recorded = recordedIn(manifest)
  return Object.entries(statesOf(now.operators)).flatMap(([state, declared]) => {
    const message = misreadState(name, state, recorded, declared)
    if (message !== undefined) return [{ name: state, message }]
    const before = Object.hasOwn(recorded, state) ? recorded[state] : undefined
    return before === undefined ? [] : compareState(`state "${state}" of stage "${name}"`, state, before, declared)
  })
}

/** Names are the user's, such as `constructor`. */
const stageIn = ({ stages }: TopologyLock, name: string): StageLock | undefined =>
  Object.hasOwn(stages, name) ? stages[name] : undefined
