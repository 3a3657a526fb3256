/**
 * `millrace skip`: what fails is given up by name, before it has failed as often as is allowed. Progress is written as the stage itself
 * would, on condition that it is as it was read: the record that is skipped is the one that was seen.
 */
import { ConfigurationError } from '../../../lib/core/errors.ts'
import { progressName } from '../../../lib/runtime/progress/open.ts'
import type { Failing, KeyedProgress, SourceProgress } from '../../../lib/runtime/progress/progress.ts'
import { keyedFormat, sourceFormat } from '../../../lib/runtime/progress/progress-format.ts'
import type { StateStore } from '../../../lib/state/state-store.ts'
import type { Say } from '../command.ts'
import { counted } from '../words.ts'
import type { OperatedStage } from './operated.ts'
import { type PartitionStatus, partitionsOf } from './stage-status.ts'

type FailingPartition = PartitionStatus & { readonly failing: Failing }

const answerMs = 15_000
/** The stage writes its progress with every attempt at the record, so a write may have to be tried again. */
const mostTries = 10

export async function skipFailing(stage: OperatedStage, partition: string | undefined, say: Say): Promise<void> {
  const { state, name, kind } = stage
  if (state === undefined || kind === 'stateless') {
    throw new ConfigurationError(
      `Stage ${name} keeps nothing, so nothing waits in it to be skipped: a record that fails becomes a dead letter by itself.`,
    )
  }
  const chosen = theOne(stage, partition, (await partitionsOf(stage)) ?? [])
  const { number, attempts } = chosen.failing
  say(`Record ${number} of ${name} ${chosen.partition} has failed in ${counted(attempts, 'attempt')}.`)
  await giveUp(stage, state.store, chosen)
  say(`It becomes a dead letter at its next attempt, with its original bytes; what lies behind it goes on then.`)
}

function theOne(
  { name }: OperatedStage,
  partition: string | undefined,
  all: readonly PartitionStatus[],
): FailingPartition {
  if (partition !== undefined && !all.some((found) => found.partition === partition)) {
    throw new ConfigurationError(
      `Stage ${name} has no partition ${partition}: it has ${all.map((found) => found.partition).join(', ')}.`,
    )
  }
  const failing = all.flatMap((found) => (found.failing === undefined ? [] : [found as FailingPartition]))
  const [only, ...others] = failing.filter((found) => partition === undefined || found.partition === partition)
  if (only === undefined) {
    const suspects = all.some(({ suspect }) => suspect !== undefined)
    throw new ConfigurationError(
      `Nothing fails in ${partition ?? `stage ${name}`}, so there is nothing to skip.${suspects ? ' A record may end the process there: it is found and given up without help.' : ''}`,
    )
  }
  if (others.length === 0) return only
  throw new ConfigurationError(
    `Several partitions of stage ${name} fail: say --partition with one of ${failing.map((found) => found.partition).join(', ')}.`,
  )
}

async function giveUp(
  { name, kind }: OperatedStage,
  store: StateStore,
  { partition, failing }: FailingPartition,
): Promise<void> {
  const key = progressName(name, partition)
  const signal = AbortSignal.timeout(answerMs)
  for (let tries = 0; tries < mostTries; tries++) {
    const stored = await store.readProgress(key, signal)
    if (stored === undefined) break
    const format = kind === 'keyed' ? keyedFormat : sourceFormat
    const progress = format.read(stored.value)
    if (progress.failing?.number !== failing.number) break
    const next = { ...progress, failing: { ...progress.failing, skipped: true as const } }
    const value = format.write(next as KeyedProgress & SourceProgress)
    if (await store.writeProgress(key, stored.version, value, signal)) return
  }
  throw new ConfigurationError(
    `Record ${failing.number} of ${name} ${partition} has gone on meanwhile, so nothing was skipped. \`millrace status\` shows what fails now.`,
  )
}
