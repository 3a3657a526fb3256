/** How often the stages of dead letters were reset: what was given up before the last time is not redriven. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { DynamoDBStateStore } from '../../lib/aws/state-table/store.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import type { StageBindings } from '../../lib/plan/stage-bindings.ts'
import { readGeneration } from '../../lib/runtime/progress/generation.ts'

const answerMs = 15_000

/**
 * Of the stages that keep progress, and of those that they feed, the generation now. A reset takes them all to the same one, and those
 * that feed first.
 */
export async function generationsOf(
  all: readonly StageBindings[],
  client: DynamoDBClient,
): Promise<ReadonlyMap<string, number>> {
  const generations = new Map<string, number>()
  for (const { sources, state, feeds = [] } of all) {
    const [source] = sources
    if (state === undefined || source === undefined) continue
    const { tableName } = state
    const store = new DynamoDBStateStore({ client, tableName, stage: source.name, clock: systemClock })
    const { generation } = await readGeneration(store, source.name, AbortSignal.timeout(answerMs)).catch((error) => {
      const why = describeError(error).message.split('\n')[0]
      throw new ConfigurationError(
        `Whether stage "${source.name}" was reset cannot be read from its table ${tableName}: ${why}`,
        { cause: error },
      )
    })
    for (const name of [source.name, ...feeds.map(({ stage }) => stage)]) {
      generations.set(name, Math.max(generation, generations.get(name) ?? 1))
    }
  }
  return generations
}
