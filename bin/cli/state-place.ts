/** Where the state of a keyed stage is: in the table of a local run, or in any table, on AWS or on an endpoint. */
import { existsSync } from 'node:fs'
import { type DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb'
import { createDynamoDBClient } from '../../lib/aws/clients/dynamodb.ts'
import { kinesisLineage } from '../../lib/aws/kinesis/lineage.ts'
import { DynamoDBStateStore } from '../../lib/aws/state-table/store.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import type { Closing } from '../../lib/local/closing.ts'
import { localDynamoDBClient } from '../../lib/local/run/tables.ts'
import { type KeyedStage, plan, stageNamed, streamNameOf, tableNameOf } from '../../lib/plan/plan.ts'
import type { PartitionLineage } from '../../lib/runtime/progress/lineage.ts'
import type { StateStore } from '../../lib/state/state-store.ts'
import type { Topology } from '../../lib/topology/topology.ts'
import { type Arguments, usage } from './arguments.ts'
import { kinesisClient } from './dead-letter-clients.ts'
import { directoryOf, reachRun, readRunFacts, runNamed } from './local-run.ts'
import { loadUserCode } from './user-code.ts'

/** The stage as its topology declares it: what makes states typed. */
export interface DeclaredStage {
  readonly topology: Topology
  readonly stage: KeyedStage
}

/** What the stage reads. Of a topic the table alone says what there is to say: its brokers are seldom reached from here. */
export type StageLog =
  | { readonly kind: 'stream'; readonly name: string; readonly lineage: PartitionLineage }
  | { readonly kind: 'topic' }

export interface StatePlace {
  /** Such as `stage by-hotel of bookings (table bookings-by-hotel-state)`. */
  readonly title: string
  /** What a command that goes on here is called with, such as `--app bookings`. */
  readonly flags: string
  readonly stage: string
  readonly slots: number
  readonly tableName: string
  readonly client: DynamoDBClient
  readonly store: StateStore
  /** Undefined where no topology is at hand: then states are shown as they are stored. */
  readonly declared: DeclaredStage | undefined
  /** Undefined where it is a stream, and nobody said which. */
  readonly log: StageLog | undefined
}

/** What the flags name, before the table is looked at. */
interface Named {
  readonly flags: string
  readonly tableName: string
  readonly streamName: string | undefined
  readonly dynamodb: string | undefined
  readonly kinesis: string | undefined
  readonly topology: Topology | undefined
}

const firstAnswerMs = 15_000

/** Opens the state of a stage. Throws a ConfigurationError for a stage, a table or a run that is not there or another's. */
export async function openState(args: Arguments, stage: string, closing: Closing): Promise<StatePlace> {
  const named = args.has('table') ? await elsewhere(args) : await localTable(args, stage, closing)
  const { tableName, streamName, topology } = named
  const declared = topology && { topology, stage: keyedStage(topology, stage) }
  const client = named.dynamodb === undefined ? createDynamoDBClient() : localDynamoDBClient(named.dynamodb)
  closing.defer(() => client.destroy())
  const store = new DynamoDBStateStore({ client, tableName, stage, clock: systemClock })
  const { slots, owner, isOnTopic } = await ownerOf({ store, client, tableName, stage, declared })
  if (isOnTopic && args.has('stream')) {
    throw usage(`stage "${stage}" reads a Kafka topic, whose partitions its table knows: leave --stream out.`)
  }
  return {
    title: `stage ${stage} of ${owner} (table ${tableName})`,
    ...{ flags: named.flags, stage, slots, tableName, client, store, declared },
    log: isOnTopic
      ? { kind: 'topic' }
      : streamName === undefined
        ? undefined
        : stream(streamName, named.kinesis, closing),
  }
}

async function localTable(args: Arguments, stage: string, closing: Closing): Promise<Named> {
  if (args.has('endpoint') || args.has('stream')) throw usage('--endpoint and --stream go with --table.')
  const app = await runNamed(args.text('app'))
  const directory = directoryOf(app)
  const typed = args.text('topology')
  const file = typed ?? (await readRunFacts(directory))?.topologyFile
  // A run that outlived its source can still be read, as it is stored.
  const topology = file === undefined || (typed === undefined && !existsSync(file)) ? undefined : await topologyIn(file)
  if (topology !== undefined && topology.name !== app) {
    throw new ConfigurationError(`${file} declares the topology ${topology.name}, and the local run is of ${app}.`)
  }
  if (topology !== undefined) keyedStage(topology, stage)
  const { kinesis, dynamodb } = await reachRun(directory, closing)
  const [tableName, streamName] = [tableNameOf(app, stage), streamNameOf(app, stage)]
  return { flags: `--app ${app}`, tableName, streamName, kinesis, dynamodb, topology }
}

async function elsewhere(args: Arguments): Promise<Named> {
  if (args.has('app')) throw usage('--app and --table name different places: give one.')
  const [tableName = '', streamName, endpoint] = [args.text('table'), args.text('stream'), args.text('endpoint')]
  const file = args.text('topology')
  const topology = file === undefined ? undefined : await topologyIn(file)
  const flags = `--table ${tableName}${endpoint === undefined ? '' : ` --endpoint ${endpoint}`}`
  return { flags, tableName, streamName, kinesis: endpoint, dynamodb: endpoint, topology }
}

const topologyIn = async (file: string): Promise<Topology> => (await loadUserCode(file)).topology

function keyedStage(topology: Topology, name: string): KeyedStage {
  const planned = plan(topology)
  const stage = stageNamed(planned, name)
  if (stage.kind === 'keyed') return stage
  const keyed = planned.stages.flatMap((other) => (other.kind === 'keyed' ? [`"${other.name}"`] : []))
  const remedy = keyed.length === 0 ? 'the topology has no keyed stage' : `name a keyed stage: ${keyed.join(', ')}`
  throw new ConfigurationError(`stage "${name}" of ${planned.topology} keeps no keys: ${remedy}.`)
}

function stream(name: string, endpoint: string | undefined, closing: Closing): StageLog {
  const client = kinesisClient(endpoint)
  closing.defer(() => client.destroy())
  return { kind: 'stream', name, lineage: kinesisLineage({ client, streamName: name, clock: systemClock }) }
}

interface Claimed {
  readonly store: StateStore
  readonly client: DynamoDBClient
  readonly tableName: string
  readonly stage: string
  readonly declared: DeclaredStage | undefined
}

interface Owner {
  /** The topology. */
  readonly owner: string
  readonly slots: number
  readonly isOnTopic: boolean
}

/** What the table says of itself, where that is what was asked for. */
async function ownerOf(claimed: Claimed): Promise<Owner> {
  const { tableName, stage, declared } = claimed
  const manifest = await readManifest(claimed)
  if (manifest === undefined) {
    throw new ConfigurationError(
      `The table ${tableName} holds no state: no stage has processed anything with it yet. Check its name, or wait for the first batch.`,
    )
  }
  const { topology, stage: found, slots, log } = manifest as { readonly [name: string]: unknown }
  if (found !== stage || (declared !== undefined && topology !== declared.topology.name)) {
    const asked = declared === undefined ? `stage "${stage}"` : `stage "${stage}" of ${declared.topology.name}`
    throw new ConfigurationError(
      `The table ${tableName} holds the state of stage "${found}" of ${topology}, not of ${asked}: name that stage, or another table.`,
    )
  }
  if (slots === undefined) {
    throw new ConfigurationError(
      `The table ${tableName} is that of stage "${stage}" of ${topology}, which feeds others and keeps no keys: name a keyed stage.`,
    )
  }
  return { owner: String(topology), slots: Number(slots), isOnTopic: log === 'topic' }
}

async function readManifest({ store, client, tableName, stage }: Claimed): Promise<unknown> {
  try {
    return await store.readManifest(AbortSignal.timeout(firstAnswerMs))
  } catch (error) {
    const { cause } = error as { readonly cause?: unknown }
    if (describeError(cause).name !== 'ResourceNotFoundException') throw readable(error)
    const others = await statesThere(client)
    const there = others.length === 0 ? 'There is no other state table.' : `State tables there: ${others.join(', ')}.`
    throw new ConfigurationError(`There is no table ${tableName} for stage "${stage}". ${there}`, { cause: error })
  }
}

const mostNamed = 10

/** The first tables there whose names end as those of stages do. */
async function statesThere(client: DynamoDBClient): Promise<readonly string[]> {
  const { TableNames = [] } = await client.send(new ListTablesCommand({})).catch(() => ({ TableNames: [] }))
  return TableNames.filter((name) => name.endsWith('-state')).slice(0, mostNamed)
}

/** What the runtime would try again is said once by a command. */
export function readable(error: unknown): ConfigurationError {
  if (error instanceof ConfigurationError) return error
  const { message } = describeError(error)
  return new ConfigurationError(`The state cannot be read: ${message.split('\n')[0]}.`, { cause: error })
}
