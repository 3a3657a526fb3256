import fc from 'fast-check'
import {
  ConfigurationError,
  describeError,
  framesOf,
  invariant,
  RetryableError,
  TerminalError,
  thrownBy,
} from '../../lib/core/errors.ts'

const throwing = (property: string) =>
  Object.defineProperty(new Error('shown'), property, {
    get() {
      throw new Error('from the getter')
    },
  })

test.each([
  ['an Error', new TypeError('no'), { name: 'TypeError', message: 'no' }],
  [
    'an error with a code',
    Object.assign(new Error('no'), { code: 'E1' }),
    { name: 'Error', message: 'no', code: 'E1' },
  ],
  ['a code that is no text', Object.assign(new Error('no'), { code: 7 }), { name: 'Error', message: 'no' }],
  ['undefined', undefined, { name: 'NonError', message: 'a step threw undefined, which is not an Error' }],
  ['null', null, { name: 'NonError', message: 'a step threw null, which is not an Error' }],
  ['text', 'oops', { name: 'NonError', message: 'a step threw oops, which is not an Error' }],
  ['a symbol', Symbol('s'), { name: 'NonError', message: 'a step threw Symbol(s), which is not an Error' }],
  ['a frozen error', Object.freeze(new RangeError('cold')), { name: 'RangeError', message: 'cold' }],
  ['no prototype', Object.create(null), { name: 'NonError', message: 'a step threw a value that cannot be shown' }],
  [
    'a throwing message',
    throwing('message'),
    { name: 'NonError', message: 'a step threw a value that cannot be shown' },
  ],
  ['a throwing code', throwing('code'), { name: 'NonError', message: 'a step threw a value that cannot be shown' }],
  ['a message that is no text', Object.assign(new Error(), { message: 7 }), { name: 'Error', message: '7' }],
])('describes %s', (_what, thrown, description) => {
  expect(describeError(thrown)).toEqual(description)
})

test('describes a revoked proxy, which throws at every touch', () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  expect(describeError(proxy)).toEqual({ name: 'NonError', message: 'a step threw a value that cannot be shown' })
})

test('describes an error that Node itself threw as the error that it is', () => {
  const thrown = (() => {
    try {
      return Buffer.alloc(-1)
    } catch (error) {
      return error
    }
  })()
  expect(describeError(thrown)).toMatchObject({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' })
})

test('never throws, whatever was thrown', () => {
  fc.assert(
    fc.property(fc.anything({ withNullPrototype: true, withObjectString: true }), (thrown) => {
      expect(typeof describeError(thrown).message).toBe('string')
    }),
  )
})

test('each error has a stable code, a name and its cause', () => {
  const cause = new Error('why')
  expect(describeError(new TerminalError('t', { cause }))).toEqual({
    name: 'TerminalError',
    message: 't',
    code: 'terminal',
  })
  expect(new TerminalError('t', { cause }).cause).toBe(cause)
  expect(describeError(new TerminalError('t', { code: 'mine' })).code).toBe('mine')
  expect(describeError(new RetryableError('r')).code).toBe('retryable')
  expect(describeError(new ConfigurationError('c')).code).toBe('configuration')
})

test('an invariant accuses ourselves', () => {
  expect(() => invariant(true, 'x')).not.toThrow()
  expect(() => invariant(0, 'the sky fell')).toThrow('This is a bug in Millrace: the sky fell')
})

test('the stack of a configuration error is its message: uncaught, it prints one line and no frames of ours', () => {
  expect(new ConfigurationError('bind it.').stack).toBe('ConfigurationError: bind it.')
})

describe('where an error was thrown', () => {
  const thrown = new Error('no')

  test('is told by file, line and column alone', () => {
    expect(framesOf(thrown)[0]).toMatch(/errors\.test\.ts:\d+:\d+$/)
    expect(framesOf(thrown).length).toBeLessThanOrEqual(6)
  })

  test('is not read from a message that looks like a frame', () => {
    const frames = framesOf(new Error('secret\n    at secret (/secret.ts:1:1)'))
    expect(frames.length).toBeGreaterThan(0)
    expect(frames.join()).not.toContain('secret')
  })

  test.each([
    [
      'an error whose message was changed',
      Object.assign(new Error('other'), { stack: 'Error: secret\n    at secret (/s.ts:1:1)' }),
    ],
    ['an error without a stack', Object.assign(new Error('no'), { stack: undefined })],
    ['what is no error', 'no'],
    ['a throwing stack', throwing('stack')],
    ['a configuration error', new ConfigurationError('bind it.')],
  ])('is not told of %s', (_what, value) => {
    expect(framesOf(value)).toEqual([])
  })

  test('is the first step that noted it, where it can be noted', () => {
    const error = new Error('no')
    expect(thrownBy('outer', thrownBy('inner', error))).toBe(error)
    expect(describeError(error)).toEqual({ name: 'Error', message: 'no', step: 'inner' })
    expect(thrownBy('map', 'oops')).toBe('oops')
    expect(describeError(thrownBy('map', Object.freeze(new Error('cold'))))).toEqual({ name: 'Error', message: 'cold' })
  })
})
