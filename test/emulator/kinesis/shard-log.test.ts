import fc from 'fast-check'
import { billedBytes, ShardLog } from '../../../lib/emulator/kinesis/shard-log.ts'

const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({ append: fc.integer({ min: 0, max: 3_000 }), elapsedMs: fc.integer({ min: -5, max: 20 }) }),
    },
    { weight: 1, arbitrary: fc.record({ trimBefore: fc.integer({ min: 0, max: 600 }) }) },
  ),
  { maxLength: 120 },
)

describe('ShardLog', () => {
  it('reads, finds and trims as a plain list does', () => {
    fc.assert(
      fc.property(
        steps,
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 9_000 }),
        (script, limit, maxBytes) => {
          const log = new ShardLog(0)
          let list: { number: number; key: string; arrivalMs: number; data: Buffer }[] = []
          let nowMs = 0
          let count = 0
          for (const step of script) {
            if ('trimBefore' in step) {
              log.trimBefore(step.trimBefore)
              list = list.filter(({ arrivalMs }) => arrivalMs >= step.trimBefore)
              continue
            }
            nowMs += step.elapsedMs
            count += 1
            const data = Buffer.alloc(step.append, count)
            const { number, arrivalMs } = log.append(`k${count}`, data, nowMs)
            expect(number).toBe(count)
            list.push({ number, key: `k${count}`, arrivalMs, data })
          }
          expect(log.firstNumber).toBe(list[0]?.number ?? count + 1)
          for (let from = 1; from <= count + 1; from += 1) {
            const expected: number[] = []
            let bytes = 0
            for (const record of list.filter(({ number }) => number >= from)) {
              bytes += billedBytes(record.key, record.data)
              if (expected.length === limit || (expected.length > 0 && bytes > maxBytes)) break
              expected.push(record.number)
            }
            expect(log.read(from, limit, maxBytes).map(({ number }) => number)).toEqual(expected)
          }
          for (const record of log.read(1, count + 1, Number.POSITIVE_INFINITY)) {
            const original = list.find(({ number }) => number === record.number)
            expect(record.data.equals(original?.data ?? Buffer.alloc(0))).toBe(true)
            expect(record).toMatchObject({ partitionKey: original?.key, arrivalMs: original?.arrivalMs })
          }
          for (const timeMs of [0, 1, 50, 300, 10_000]) {
            const expected = list.find(({ arrivalMs }) => arrivalMs >= timeMs)?.number ?? count + 1
            expect(log.firstNumberAtOrAfter(timeMs)).toBe(expected)
          }
        },
      ),
    )
  })

  it('never lets an arrival time fall, whatever the clock does', () => {
    const log = new ShardLog(100)
    expect([50, 120, 110, 130].map((nowMs) => log.append('k', Buffer.alloc(0), nowMs).arrivalMs)).toEqual([
      100, 120, 120, 130,
    ])
  })

  it('keeps its own copy of the bytes', () => {
    const log = new ShardLog(0)
    const data = Buffer.from('before')
    log.append('k', data, 0)
    data.write('after!')
    expect(log.read(1, 1, 1)[0]?.data.toString()).toBe('before')
  })
})
