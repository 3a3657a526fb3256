/**
 * A local run, whether it is up or not: it says of itself what its stages are, and does what `disabled.json` asks for. Where it is
 * not up, its mappings stand still whatever is asked, and its tables and streams are served from here.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { kinesisLineage } from '../../../lib/aws/kinesis/lineage.ts'
import { DynamoDBStateStore } from '../../../lib/aws/state-table/store.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { ConfigurationError } from '../../../lib/core/errors.ts'
import type { Closing } from '../../../lib/local/closing.ts'
import { CheckpointFile } from '../../../lib/local/files/checkpoint-file.ts'
import { lockHolder } from '../../../lib/local/files/directory-lock.ts'
import {
  type DescribedRun,
  readDescribedRun,
  readDisabled,
  writeDisabled,
} from '../../../lib/local/files/mapping-switches.ts'
import { KinesisShardReader } from '../../../lib/local/reading/kinesis-shard-reader.ts'
import { localKinesisClient } from '../../../lib/local/run/streams.ts'
import { localDynamoDBClient } from '../../../lib/local/run/tables.ts'
import { beginTimeAgain, directoryOf, reachRun, runNamed } from '../local-run.ts'
import { type MappingState, type Operated, orderedStages } from './operated.ts'
import { firstWaiting, type Place, streamNameIn } from './waiting.ts'

export async function openLocal(app: string | undefined, closing: Closing): Promise<Operated> {
  const name = await runNamed(app)
  const directory = directoryOf(name)
  const described = await describedRun(directory)
  const endpoints = await reachRun(directory, closing)
  const client = localKinesisClient(endpoints.kinesis)
  closing.defer(() => client.destroy())
  const dynamodb = localDynamoDBClient(endpoints.dynamodb)
  closing.defer(() => dynamodb.destroy())
  const stages = orderedStages(described.stages.map(({ bindings }) => bindings)).map((stage) => {
    const { bindings } = stage
    const streamName = streamNameIn(bindings) ?? stage.name
    const reader = new KinesisShardReader({ client, streamName, clock: systemClock })
    return {
      ...stage,
      state: bindings.state && {
        store: new DynamoDBStateStore({
          client: dynamodb,
          tableName: bindings.state.tableName,
          stage: stage.name,
          clock: systemClock,
        }),
        tableName: bindings.state.tableName,
      },
      lineage: kinesisLineage({ client, streamName, clock: systemClock }),
      firstWaitingMs: (...place: Place) => firstWaiting(reader, ...place),
    }
  })
  const isUp = await isRunUp(directory, described)
  return {
    title: `${name} (${directory})`,
    topology: name,
    flags: `--app ${name}`,
    stages,
    dynamodb,
    // 'Disabled' is said when nothing is in flight any more.
    inFlightMs: 0,
    note: isUp ? undefined : 'The run is not up: nothing moves until it is started again.',
    mappingStates: () => mappingStates(directory),
    async switchMappings(names, enabled) {
      const disabled = new Set(await readDisabled(directory))
      for (const stage of names) {
        if (enabled) disabled.delete(stage)
        else disabled.add(stage)
      }
      await writeDisabled(directory, [...disabled])
    },
    checkRewind: async () => undefined,
    async rewind(stage, fromMs) {
      const file = join(directory, 'checkpoints', `${stage}.json`)
      const checkpoints = new CheckpointFile(file)
      await checkpoints.load()
      const found = stages.find((candidate) => candidate.name === stage)
      const listed = (await found?.lineage.list(AbortSignal.timeout(answerMs))) ?? []
      for (const { partition } of listed) {
        await checkpoints.save(partition, { position: { at: 'timestamp', timestampMs: fromMs }, drained: false })
      }
      await beginTimeAgain(directory)
      return []
    },
  }
}

const answerMs = 15_000

async function describedRun(directory: string): Promise<DescribedRun> {
  const described = await readDescribedRun(directory)
  if (described !== undefined) return described
  const isThere = existsSync(directory)
  throw new ConfigurationError(
    `${directory} does not say which stages it has${isThere ? ': start the run once with this release of Millrace' : ''}.`,
  )
}

/** Whether the process that described the run still has it. */
async function isRunUp(directory: string, { pid }: DescribedRun): Promise<boolean> {
  return (await lockHolder(join(directory, 'application.lock'))) === pid
}

/** Of a run that is not up: what its mappings will be when it is. */
async function mappingStates(directory: string): Promise<ReadonlyMap<string, MappingState>> {
  const described = await describedRun(directory)
  const isUp = await isRunUp(directory, described)
  const disabled = await readDisabled(directory)
  return new Map(
    described.stages.map(({ bindings, state }) => {
      const name = bindings.sources[0]?.name ?? ''
      return [name, isUp ? state : disabled.includes(name) ? 'Disabled' : 'Enabled'] as const
    }),
  )
}
