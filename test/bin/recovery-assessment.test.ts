import { meets } from '../../bench/figures.ts'
import { figuresOf, type SizedRun } from '../../bin/demos/recovery/assessment.ts'

const runOf = (keys: number, recoveriesMs: readonly number[], changes: Partial<SizedRun> = {}): SizedRun => ({
  ...{ keys, kills: recoveriesMs.length, recoveriesMs, takeOversMs: [50], sent: 10, users: keys, counted: 10 },
  ...changes,
})
const missed = (small: SizedRun, large: SizedRun): string[] =>
  figuresOf(small, large, 100)
    .filter((figure) => !meets(figure))
    .map(({ name }) => name)

test('times that differ by less than a polling interval do not differ', () => {
  expect(missed(runOf(10, [100, 110, 120]), runOf(1_000, [150, 200, 210]))).toEqual([])
})

test('times that differ by more than that, and than their own spread, miss the goal', () => {
  expect(missed(runOf(10, [100, 110, 120]), runOf(1_000, [300, 310, 320]))).toEqual(['difference of the medians'])
  expect(missed(runOf(10, [300, 310, 320]), runOf(1_000, [100, 110, 120]))).toEqual(['difference of the medians'])
})

test('where times of one size differ among themselves by more, they say nothing of the size', () => {
  expect(missed(runOf(10, [100, 100, 110, 900, 1_000]), runOf(1_000, [300, 310, 320, 330, 340]))).toEqual([])
})

test('a lost record, one that is counted twice, and a kill without results miss their goals', () => {
  const good = runOf(10, [100])
  expect(missed(good, runOf(1_000, [100], { counted: 9 }))).toEqual(['1,000 keys: counted in the state'])
  expect(missed(good, runOf(1_000, [100], { counted: 11 }))).toEqual(['1,000 keys: counted in the state'])
  expect(missed(good, runOf(1_000, [100], { kills: 2 }))).toEqual(['1,000 keys: kills with a new result after'])
  expect(missed(good, runOf(1_000, []))).toEqual(['difference of the medians'])
})
