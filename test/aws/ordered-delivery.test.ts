import { type Destination, deliverInOrder } from '../../lib/aws/ordered-delivery.ts'
import { delivered } from '../../lib/runtime/sink.ts'
import { awsError, InstantClock, never, testPorts } from './sink-worlds.ts'

/** A destination that throws what it is given, one per request, and then takes everything. */
function destination(...failures: Error[]): Destination<string> {
  return {
    label: 'nowhere',
    maxItemsPerRequest: 10,
    maxBytesPerRequest: 10,
    maxRequests: 2,
    sizeOf: () => 1,
    orderKeyOf: undefined,
    async send() {
      const failure = failures.shift()
      if (failure) throw failure
      return undefined
    },
  }
}

describe('ordered delivery to AWS', () => {
  test('a throttle passes by itself, after a delay of random length', async () => {
    const clock = new InstantClock()
    const { random: _, ...ports } = testPorts(clock)
    const to = destination(awsError('ThrottlingException'), awsError('ThrottlingException'))
    expect(await deliverInOrder(['a'], to, ports, never())).toEqual([delivered])
    expect(clock.sleptMs).toHaveLength(2)
    for (const ms of clock.sleptMs) expect(ms).toBeLessThan(100)
  })

  test('a missing permission does not', async () => {
    const to = destination(awsError('AccessDeniedException'))
    expect(await deliverInOrder(['a'], to, testPorts(), never())).toMatchObject([
      { status: 'retry', error: { code: 'sink-misconfigured' } },
    ])
  })
})
