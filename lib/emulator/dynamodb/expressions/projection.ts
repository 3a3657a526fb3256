/** Projections: the parts of an item that a reader asked for. */
import type { AttributeValue, Item } from '../shapes.ts'
import { emptyRecord } from '../value.ts'
import { checkDisjoint, type ExpressionReader, type Path, valueAt } from './reader.ts'

export function readProjection(reader: ExpressionReader): Path[] {
  const paths: Path[] = []
  do paths.push(reader.path())
  while (reader.accept(','))
  reader.expectEnd()
  checkDisjoint(reader, paths)
  return paths
}

/** A tree of what was asked for: `whole` at the end of a path, else the steps on from here. */
interface Wanted {
  whole: boolean
  readonly steps: Map<string | number, Wanted>
}

/** What the paths show of an item: maps keep their shape, chosen elements of a list move together in their order. */
export function project(item: Item, paths: readonly Path[]): Record<string, AttributeValue> {
  const root: Wanted = { whole: false, steps: new Map() }
  for (const path of paths) {
    if (valueAt(item, path) === undefined) continue
    let at = root
    for (const step of path) {
      const next = at.steps.get(step) ?? { whole: false, steps: new Map() }
      at.steps.set(step, next)
      at = next
    }
    at.whole = true
  }
  return pickMembers(item, root)
}

function pickMembers(members: Item, wanted: Wanted): Record<string, AttributeValue> {
  const picked = emptyRecord<AttributeValue>()
  for (const [name, inner] of wanted.steps) picked[String(name)] = pick(members[name] as AttributeValue, inner)
  return picked
}

function pick(value: AttributeValue, wanted: Wanted): AttributeValue {
  if (wanted.whole) return value
  if (value.M !== undefined) return { M: pickMembers(value.M, wanted) }
  const indices = [...wanted.steps.keys()].map(Number).sort((a, b) => a - b)
  return { L: indices.map((i) => pick(value.L?.[i] as AttributeValue, wanted.steps.get(i) as Wanted)) }
}
