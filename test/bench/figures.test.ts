import { type Figure, figuresFile, finish, meets } from '../../bench/figures.ts'

const figure = (value: number, goal?: number, better?: Figure['better']): Figure => ({
  ...{ name: 'lost', value, unit: 'records' },
  ...(goal === undefined ? {} : { goal }),
  ...(better && { better }),
})

test.each([
  [figure(7), true],
  [figure(7, 7), true],
  [figure(6, 7), false],
  [figure(7, 7, 'lower'), true],
  [figure(8, 7, 'lower'), false],
  [figure(Number.POSITIVE_INFINITY, 7, 'lower'), false],
  [figure(7, 7, 'exactly'), true],
  [figure(6, 7, 'exactly'), false],
  [figure(8, 7, 'exactly'), false],
])('%j meets its goal: %p', (one, isMet) => {
  expect(meets(one)).toBe(isMet)
})

test('the file says on which side of each goal the value must be', () => {
  const figures = [figure(0, 0, 'lower'), { ...figure(3, 2), name: 'gain' }, { ...figure(9), name: 'sent' }]
  expect(figuresFile('npm run x', figures)).toEqual({
    command: 'npm run x',
    ok: true,
    figures: [
      { name: 'lost', value: 0, unit: 'records', goal: 0, better: 'lower' },
      { name: 'gain', value: 3, unit: 'records', goal: 2, better: 'higher' },
      { name: 'sent', value: 9, unit: 'records' },
    ],
    missed: [],
  })
})

test('in the file every value is a number: what never came is named as missed, and left out without a goal', () => {
  const never = { value: Number.POSITIVE_INFINITY, unit: 'ms', better: 'lower' } as const
  const figures = [figure(1, 0, 'lower'), { ...never, name: 'take-over', goal: 300 }, { ...never, name: 'detection' }]
  expect(JSON.parse(JSON.stringify(figuresFile('npm run x', figures)))).toEqual({
    command: 'npm run x',
    ok: false,
    figures: [{ name: 'lost', value: 1, unit: 'records', goal: 0, better: 'lower' }],
    missed: ['lost', 'take-over'],
  })
})

test('a run ends with the verdict: that all goals are met, or which are missed and an exit code of 1', () => {
  const exitCode = process.exitCode
  const said = jest.spyOn(console, 'log').mockImplementation(() => undefined)
  const complained = jest.spyOn(console, 'error').mockImplementation(() => undefined)
  try {
    finish('npm run x', [figure(0, 0, 'lower'), figure(7, 7), figure(3)], undefined)
    expect(process.exitCode).toBe(exitCode)
    expect(said.mock.calls).toEqual([['\nAll 2 goals are met.']])
    finish('npm run x', [figure(0, 0, 'lower'), figure(3, 2, 'lower')], undefined)
    expect(process.exitCode).toBe(1)
    expect(complained.mock.calls).toEqual([['missed: lost is 3 records, the goal is at most 2']])
  } finally {
    process.exitCode = exitCode
    jest.restoreAllMocks()
  }
})
