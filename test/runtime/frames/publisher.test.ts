import fc from 'fast-check'
import { RetryableError } from '../../../lib/core/errors.ts'
import type { EncodedFrame } from '../../../lib/runtime/frames/frame.ts'
import { type FrameStream, framePublisher } from '../../../lib/runtime/frames/publisher.ts'
import type { Answer } from '../../../lib/runtime/ordered-delivery.ts'
import { delivered } from '../../../lib/runtime/sink.ts'
import { VirtualClock } from '../../../lib/testing/virtual-clock.ts'
import { never, testPorts } from '../../aws/sink-worlds.ts'

const refused: Answer = { status: 'refused', error: new Error('busy') }
const passing = new Error('connection lost')
const ports = () => ({ ...testPorts(), random: () => 0.5, passesByItself: (thrown: unknown) => thrown === passing })

const frame = (slot: number, n: number, byteLength = 8): EncodedFrame => {
  const bytes = Buffer.alloc(byteLength)
  bytes.writeUInt32BE(n)
  return { slot, bytes }
}
const nameOf = ({ slot, bytes }: EncodedFrame) => `${slot}.${Buffer.from(bytes).readUInt32BE()}`

/** A stream that answers by plan and keeps what lands and what was asked. */
function stream(plan: (frame: EncodedFrame, request: number) => 'take' | 'refuse' | 'lose' | 'break') {
  const landed: string[] = []
  const requests: EncodedFrame[][] = []
  const port: FrameStream = {
    label: 'stream "orders-by-customer"',
    async put(frames) {
      const request = requests.push([...frames]) - 1
      const fates = frames.map((each) => plan(each, request))
      if (fates.includes('break')) throw new Error('AccessDenied')
      for (const [i, each] of frames.entries()) if (fates[i] !== 'refuse') landed.push(nameOf(each))
      if (fates.includes('lose')) throw passing
      return fates.every((fate) => fate === 'take') ? undefined : fates.map((f) => (f === 'take' ? delivered : refused))
    },
  }
  return { port, landed, requests }
}

describe('the publisher (B1: one frame of a slot at a time)', () => {
  test('whatever is refused or lost, each slot gets its frames in order, and no request holds two of one', async () => {
    const anyFrames = fc.array(fc.nat({ max: 6 }), { maxLength: 40 })
    const fates = fc.array(fc.constantFrom('take' as const, 'take' as const, 'refuse' as const, 'lose' as const), {
      maxLength: 60,
    })
    await fc.assert(
      fc.asyncProperty(anyFrames, fates, async (slots, plan) => {
        const left = [...plan]
        const { port, landed, requests } = stream(() => left.shift() ?? 'take')
        const frames = slots.map((slot, n) => frame(slot, n))
        await framePublisher(port, ports()).publish(frames, never())
        for (const request of requests) expect(new Set(request.map(({ slot }) => slot)).size).toBe(request.length)
        for (const slot of new Set(slots)) {
          const firsts = [...new Set(landed.filter((name) => name.startsWith(`${slot}.`)))]
          expect(firsts).toEqual(frames.filter((each) => each.slot === slot).map(nameOf))
          const numbers = landed.filter((name) => name.startsWith(`${slot}.`)).map((name) => Number(name.split('.')[1]))
          expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
        }
      }),
      { numRuns: 200 },
    )
  })

  test('slots share a request, up to 500 frames and 5 MiB', async () => {
    const many = stream(() => 'take')
    await framePublisher(many.port, ports()).publish(
      Array.from({ length: 1_200 }, (_, slot) => frame(slot, 0)),
      never(),
    )
    expect(many.requests.map((request) => request.length)).toEqual([500, 500, 200])
    const large = stream(() => 'take')
    await framePublisher(large.port, ports()).publish(
      Array.from({ length: 12 }, (_, slot) => frame(slot, 0, 1_000_000)),
      never(),
    )
    expect(large.requests.map((request) => request.length)).toEqual([5, 5, 2])
  })
})

describe('the publisher (B2: refusals)', () => {
  test('a refused frame waits while other slots go on', async () => {
    const clock = new VirtualClock()
    const { port, requests } = stream(({ slot }, request) => (slot === 0 && request === 0 ? 'refuse' : 'take'))
    const publishing = framePublisher(port, { ...ports(), clock }).publish(
      [frame(0, 0), frame(1, 1), frame(1, 2), frame(0, 3)],
      never(),
    )
    const names = () => requests.map((request) => request.map(nameOf))
    for (let turn = 0; requests.length < 2 && turn < 1_000; turn++) await Promise.resolve()
    expect(names()).toEqual([['0.0', '1.1'], ['1.2']])
    clock.advance(25)
    await publishing
    expect(names().slice(2)).toEqual([['0.0'], ['0.3']])
  })

  test('when the signal aborts it awaits what is in flight and says what did not go', async () => {
    const clock = new VirtualClock()
    const ending = new AbortController()
    let answer: (answers: undefined) => void = () => undefined
    let ended = false
    const port: FrameStream = { label: 'stream "s"', put: () => new Promise((resolve) => (answer = resolve)) }
    const publishing = framePublisher(port, { ...ports(), clock })
      .publish([frame(0, 0), frame(0, 1)], ending.signal)
      .catch((error) => error)
      .finally(() => (ended = true))
    ending.abort()
    await Promise.resolve()
    expect(ended).toBe(false)
    answer(undefined)
    const error = await publishing
    expect(error).toBeInstanceOf(RetryableError)
    expect(error.code).toBe('sink-deadline')
  })

  test('a stream that refuses for ever is given up at the deadline', async () => {
    const ending = new AbortController()
    let rounds = 0
    const { port } = stream(() => {
      if (++rounds === 9) ending.abort()
      return 'refuse'
    })
    await expect(framePublisher(port, ports()).publish([frame(0, 0)], ending.signal)).rejects.toMatchObject({
      name: 'RetryableError',
      code: 'sink-deadline',
    })
    expect(rounds).toBe(9)
  })
})

describe('the publisher (B3: nothing is committed on half a publication)', () => {
  test('what needs a person rejects at once, as a retry', async () => {
    const { port } = stream(() => 'break')
    await expect(framePublisher(port, ports()).publish([frame(0, 0)], never())).rejects.toMatchObject({
      name: 'RetryableError',
      code: 'sink-misconfigured',
    })
  })

  test('a frame that is refused for good rejects too', async () => {
    const rejected: Answer = { status: 'rejected', error: new Error('too large for the stream') }
    const port: FrameStream = { label: 'stream "s"', put: async () => [rejected] }
    await expect(framePublisher(port, ports()).publish([frame(0, 0)], never())).rejects.toMatchObject({
      name: 'RetryableError',
      code: 'frame-refused',
    })
  })

  test('no frames need no request', async () => {
    const { port, requests } = stream(() => 'take')
    await framePublisher(port, ports()).publish([], never())
    expect(requests).toEqual([])
  })
})
