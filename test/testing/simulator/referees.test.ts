import type { Evidence } from '../../../lib/testing/simulator/evidence.ts'
import type { Line } from '../../../lib/testing/simulator/lines.ts'
import { deadLetterId, type LoggedRecord, replay, type SoldItem } from '../../../lib/testing/simulator/oracle.ts'
import { referees } from '../../../lib/testing/simulator/referees.ts'

const origin = { partition: 'shard-0', position: '1', arrivalTimeMs: 0 }
const place = { shard: 'shard-0', origin, eventTimeMs: 0, arrivalMs: 0, isOvertaken: false, isDenied: false }

/** A line of one user each, and what its step sends to the third stage. */
function sent(number: number) {
  const value: Line = {
    line: `${number}.0`,
    user: `user-${number}`,
    item: 'item-1',
    cents: 33,
    does: 'add',
    fails: 'never',
  }
  const line: LoggedRecord<Line> = {
    ...place,
    stage: 'by-user',
    slot: 6,
    number,
    key: value.user,
    value,
    upstream: 'orders/shard-0',
    sentAt: [number, 0],
  }
  const sold: LoggedRecord<SoldItem> = {
    ...place,
    stage: 'by-item',
    slot: 1,
    number,
    key: value.item,
    value: { item: value.item, line: value.line, cents: value.cents, total: value.cents },
    upstream: 'by-user/shard-0',
    sentAt: [number, 0],
  }
  return { line, sold }
}

/** What applied-once says of a run that sent two lines, of which those that are told were taken for killers. */
async function findings(accused: readonly LoggedRecord<Line>[], arrived: readonly LoggedRecord<SoldItem>[]) {
  const lines = [sent(34).line, sent(35).line]
  const killed = new Set(accused.map(deadLetterId))
  const replayed = replay(lines, arrived, killed, false)
  const outputs = [...replayed.outputs, ...replayed.interim]
  const evidence = {
    run: { hasThirdStage: true, drawn: { changes: { stage: false } } },
    replay: replayed,
    applied: outputs.map(([identity, content]) => ({
      sink: identity.slice(0, identity.indexOf(':')),
      identity,
      content,
    })),
    lines: { records: lines },
    sold: { records: arrived },
    deadLetters: accused.map((record) => ({ letter: { id: deadLetterId(record) } })),
    killed,
  }
  const found: string[] = []
  for await (const finding of referees['applied-once']?.(evidence as unknown as Evidence) ?? ['no such referee'])
    found.push(finding)
  return found
}

test('what was sent of a record before it was wrongly taken for a killer may be in the third stage, and need not', async () => {
  const [first, second] = [sent(34), sent(35)]
  expect(await findings([second.line], [first.sold, second.sold])).toEqual([])
  expect(await findings([second.line], [first.sold])).toEqual([])
})

test('what was sent of a record that is applied is in the third stage once', async () => {
  const [first, second] = [sent(34), sent(35)]
  expect(await findings([], [first.sold, second.sold])).toEqual([])
  expect(await findings([], [first.sold])).toHaveLength(1)
  expect(await findings([second.line], [second.sold])).toHaveLength(1)
  const again = { ...first.sold, number: 36 }
  expect(await findings([second.line], [first.sold, again])).toHaveLength(1)
})
