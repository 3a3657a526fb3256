/** The map entries that the records of a batch declare: they are loaded together with its keys. */
import type { KeyedStage } from '../../plan/plan.ts'
import type { EntryName } from '../../state/state-store.ts'
import type { Line } from '../progress/fold.ts'
import { hasRecord } from './keyed-line.ts'
import type { LineSteps } from './line-steps.ts'
import { KeyedRecordInfo } from './record-info.ts'

/** Each name once. Only operators right behind the stage's keyBy can name them: what others are given is not known yet. */
export function declaredEntries(stage: KeyedStage, lines: readonly Line[], steps: LineSteps): readonly EntryName[] {
  const names = new Map<string, EntryName>()
  for (const node of stage.nodes) {
    if (node.type !== 'keyed' || node.input !== stage.input || node.operator.prefetch === undefined) continue
    const { operator } = node
    for (const line of lines.filter(hasRecord)) {
      const { key } = line.record
      const wanted = declared(() => operator.prefetch?.(steps.value(line), new KeyedRecordInfo(line.record)))
      for (const { state, entry } of wanted) names.set(JSON.stringify([key, state, entry]), { key, state, entry })
    }
  }
  return [...names.values()]
}

/** What throws here throws again, and is dealt with, when the record is stepped. */
function declared<T>(names: () => Iterable<T> | undefined): readonly T[] {
  try {
    return [...(names() ?? [])]
  } catch {
    return []
  }
}
