/**
 * What the stages of a local run read and write: streams for the sources, the sinks, the keyed stages and the dead letters, and tables
 * for sinks and for state. Each is found or made.
 */
import type { KinesisClient } from '@aws-sdk/client-kinesis'
import { systemClock } from '../../aws/system-clock.ts'
import { type Plan, type StagePlan, streamNameOf, tableNameOf } from '../../plan/plan.ts'
import type { StageBindings } from '../../plan/stage-bindings.ts'
import type { LocalEndpoints } from './endpoints.ts'
import { ensureStream, type LocalStream } from './streams.ts'
import { ensureStateTable, ensureTables, type LocalTable, localDynamoDBClient, type SinkTables } from './tables.ts'

/** The name under which the dead letters appear among the streams and the outputs. */
export const deadLetterOutput = 'dead letters'

export interface LocalResources {
  /** By the name of the source, sink or keyed stage, and {@link deadLetterOutput}. */
  readonly streams: ReadonlyMap<string, LocalStream>
  /** The tables of sinks, by the names of the sinks. */
  readonly tables: ReadonlyMap<string, LocalTable>
  /** The names of the state tables, by stage: of those that are keyed or feed one. */
  readonly stateTables: ReadonlyMap<string, string>
}

export interface LocalResourcesOptions {
  readonly planned: Plan
  readonly endpoints: LocalEndpoints
  readonly client: KinesisClient
  /** Shards of a source's or a keyed stage's stream that does not exist yet. @default 1 */
  readonly shards?: number
  /** The sinks that are tables. @default none */
  readonly tables?: SinkTables
  /** @default the topology's name and `-dead-letters` */
  readonly deadLetterStream?: string
}

/**
 * Finds or makes all of it, tables first.
 *
 * @throws ConfigurationError where an endpoint does not answer, or a table has other keys than it must have.
 */
export async function ensureResources(options: LocalResourcesOptions): Promise<LocalResources> {
  const { planned, endpoints, tables = {} } = options
  const dynamodb = localDynamoDBClient(endpoints.dynamodb)
  try {
    const sinkTables = await ensureTables(planned, dynamodb, systemClock, tables)
    const stateTables = new Map<string, string>()
    for (const { kind, name } of planned.stages) {
      if (kind === 'stateless') continue
      const tableName = tableNameOf(planned.topology, name)
      await ensureStateTable(dynamodb, systemClock, tableName)
      stateTables.set(name, tableName)
    }
    return { streams: await ensureStreams(options), tables: sinkTables, stateTables }
  } finally {
    dynamodb.destroy()
  }
}

async function ensureStreams(options: LocalResourcesOptions): Promise<ReadonlyMap<string, LocalStream>> {
  const { planned, client, shards = 1, tables = {} } = options
  const { topology, graph, stages } = planned
  const streams = new Map<string, LocalStream>()
  const ensure = async (name: string, streamName: string, count: number) =>
    void streams.set(name, await ensureStream(client, systemClock, streamName, count))
  for (const { name } of graph.sources) await ensure(name, name, shards)
  for (const { kind, name } of stages) if (kind === 'keyed') await ensure(name, streamNameOf(topology, name), shards)
  for (const { name } of graph.sinks) if (!Object.hasOwn(tables, name)) await ensure(name, name, 1)
  await ensure(deadLetterOutput, options.deadLetterStream ?? `${topology}-dead-letters`, 1)
  return streams
}

/** What a stage's function is told: Kinesis streams for everything, but for state and for the sinks that are tables. */
export function bindingsOf(planned: Plan, stage: StagePlan, resources: LocalResources): StageBindings {
  const streamOf = (name: string): LocalStream => resources.streams.get(name) as LocalStream
  const stateTable = resources.stateTables.get(stage.name)
  return {
    formatVersion: 1,
    topology: planned.topology,
    sources: [{ name: stage.name, kind: 'kinesis', streamArn: streamOf(stage.name).streamArn }],
    sinks: stage.sinks.map((name) => {
      const table = resources.tables.get(name)
      if (table !== undefined) return { name, kind: 'dynamodb', ...table }
      return { name, kind: 'kinesis', streamName: streamOf(name).streamName, ordering: 'per-key' }
    }),
    deadLetters: { kind: 'kinesis', streamName: streamOf(deadLetterOutput).streamName },
    ...(stateTable === undefined ? {} : { state: { tableName: stateTable } }),
    ...(stage.feeds.length === 0
      ? {}
      : {
          feeds: stage.feeds.map((feed) => ({
            stage: feed.stage,
            slots: feed.slots,
            streamName: streamOf(feed.stage).streamName,
          })),
        }),
  }
}
