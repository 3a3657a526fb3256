import type { OperatedStage } from '../../../bin/cli/operate/operated.ts'
import { skipFailing } from '../../../bin/cli/operate/skip.ts'
import { progressName } from '../../../lib/runtime/progress/open.ts'
import { blankKeyedProgress, type Failing } from '../../../lib/runtime/progress/progress.ts'
import { readKeyedProgress, writeKeyedProgress } from '../../../lib/runtime/progress/progress-format.ts'
import type { StateStore } from '../../../lib/state/state-store.ts'

const shard = 'shardId-000000000000'
const progressOf = (failing: Failing | undefined) => ({ ...blankKeyedProgress(1, [0]), number: 11, failing })

/** A stage whose progress is read as these say, one after the other; what is written behind the read of another is refused. */
function stageOf(...reads: readonly (Failing | undefined)[]) {
  const written: unknown[] = []
  let version = 0
  const store: Pick<StateStore, 'readProgress' | 'writeProgress'> = {
    async readProgress(name) {
      if (name !== progressName('by-guest', shard)) return undefined
      version = Math.min(version + 1, reads.length)
      return { version, value: writeKeyedProgress(progressOf(reads[version - 1])) }
    },
    async writeProgress(_name, expected, value) {
      if (expected !== reads.length) return false
      written.push(readKeyedProgress(value).failing)
      return true
    },
  }
  const stage: OperatedStage = {
    name: 'by-guest',
    kind: 'keyed',
    bindings: { sources: [] } as never,
    slots: 1,
    state: { store: store as StateStore, tableName: 'by-guest' },
    lineage: {
      list: async () => [{ partition: shard, isClosed: false }],
      isCaughtUp: async () => false,
    } as never,
    firstWaitingMs: async () => undefined,
  }
  return { stage, written }
}

test('the record that was shown is given up, though its stage counts another attempt meanwhile', async () => {
  const { stage, written } = stageOf(
    { number: 12, attempts: 2 },
    { number: 12, attempts: 3 },
    { number: 12, attempts: 4 },
  )
  await skipFailing(stage, undefined, () => undefined)
  expect(written).toEqual([{ number: 12, attempts: 4, skipped: true }])
})

test.each([
  ['fails with another record', { number: 13, attempts: 1 }],
  ['fails no more', undefined],
])('nothing is given up where the stage %s by then', async (_, meanwhile) => {
  const { stage, written } = stageOf({ number: 12, attempts: 2 }, meanwhile)
  await expect(skipFailing(stage, undefined, () => undefined)).rejects.toThrow(
    `Record 12 of by-guest ${shard} has gone on meanwhile, so nothing was skipped.`,
  )
  expect(written).toEqual([])
})
