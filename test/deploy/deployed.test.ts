/**
 * The real stacks, deployed to MiniStack: records go into the deployed streams, the deployed functions are driven by the settings of the
 * deployed mappings, and what comes out is compared with batch computations. `npm run test:deploy` runs it.
 */
import { batchOf, windowKey } from '../../bin/demos/bookings/batch.ts'
import { type StandInClients, standInClients } from '../../bin/deploy/clients.ts'
import { inputRecords } from '../../bin/flights/input.ts'
import type { Booking } from '../../functions/bookings/topology.ts'
import { BookingsCheck, booking } from './bookings-check.ts'
import { failsBeforeTheKey, failsInTheWindow } from './bookings-with-bugs.ts'
import { drawnFlights } from './drawn-flights.ts'
import { DrivenApplication } from './driven-application.ts'
import { FlightsCheck } from './flights-check.ts'
import { describeDeployed } from './gate.ts'
import { MiniStack, run } from './mini-stack.ts'

const windowMs = 5 * 60_000
interface StoredWindows {
  readonly slices: readonly (readonly [startMs: number, endMs: number, values: object])[]
}

describeDeployed('the stacks as a user deploys them', () => {
  const miniStack = MiniStack.shared()
  let clients: StandInClients
  let bookings: DrivenApplication
  let check: BookingsCheck

  beforeAll(async () => {
    clients = standInClients(miniStack.url)
    bookings = await DrivenApplication.start(clients, 'Bookings')
    check = await BookingsCheck.open(clients, bookings)
  }, 300_000)

  afterAll(async () => {
    await bookings?.stop()
    clients?.destroy()
  }, 300_000)

  const millrace = (...args: readonly string[]) => run(process.execPath, ['bin/millrace.ts', ...args])
  const queue = () => {
    const { deadLetters } = bookings.stage('by-hotel').bindings
    return ['--queue', deadLetters.kind === 'sqs' ? deadLetters.queueUrl : '', '--endpoint', miniStack.url]
  }
  /** The reasons of the dead letters that are open, sorted. */
  const deadLetters = async (): Promise<readonly string[]> => {
    const { code, output } = await millrace('dead-letters', 'list', '--json', ...queue())
    expect({ code, output }).toMatchObject({ code: 0 })
    const lines = output.split('\n').filter((line) => line !== '')
    return lines.map((line) => JSON.parse(line).reason.code).toSorted()
  }

  /** What the command line reads in the deployed table of a window that is still open. */
  const expectOpenWindow = async ({ hotelId, bookedAt }: Booking) => {
    const { bindings } = bookings.stage('by-hotel')
    const at = ['--table', bindings.state?.tableName ?? '', '--endpoint', miniStack.url]
    const { code, output } = await millrace('state', 'get', 'by-hotel', hotelId, ...at, '--json')
    expect({ code, output }).toMatchObject({ code: 0 })
    const { slices }: StoredWindows = JSON.parse(output).states['bookings-per-hotel']
    const startMs = bookedAt - (bookedAt % windowMs)
    const { windows } = batchOf(await check.requests.bookings())
    const { count } = windows.get(windowKey(hotelId, startMs)) ?? {}
    expect(slices).toContainEqual([startMs, startMs + windowMs, expect.objectContaining({ count })])
  }

  test('windows close, late bookings correct them, and what came too late is told, as a batch computation says', async () => {
    const [round] = check.rounds
    await bookings.announce()
    await check.requests.putBookings(round?.inTime ?? [])
    await check.requests.put([{ data: Buffer.from('{"bookingId":'), partitionKey: 'cut', shard: 0 }])
    await bookings.settle()
    await check.requests.putBookings([...(round?.inGrace ?? []), ...(round?.tooLate ?? [])])
    await bookings.settle()
    await expectOpenWindow(round?.inTime.at(-1)?.booking ?? booking('', '', 0))
    await check.requests.putBookings(check.closing(0))
    await bookings.settle()
    await check.expectEqualToBatch()
    expect(await deadLetters()).toEqual(['not-json'])
  }, 300_000)

  test('a redeployment with a bug fails on two records, which are dead letters while all others go on', async () => {
    await miniStack.deploy('Buggy')
    await bookings.takeOver()
    const [, round] = check.rounds
    await check.requests.putBookings(round?.inTime ?? [])
    // Their window is open until they are redriven: later they would be too late for it, like any other record.
    const bookedAt = (round?.correctedMs ?? 0) + 6 * 60_000
    const [failing = ''] = await check.requests.putBookings([
      { booking: booking(failsBeforeTheKey, 'hotel-1', bookedAt), shard: 0 },
      { booking: booking(failsInTheWindow, 'hotel-2', bookedAt), shard: 1 },
    ])
    await bookings.settle()
    expect(await deadLetters()).toEqual(['not-json', 'step-failed', 'step-failed'])
    expect(bookings.invocations).toContainEqual(
      expect.objectContaining({
        stage: 'booking-requests',
        outcome: reporting(failing),
      }),
    )
  }, 300_000)

  test('the mended code is deployed, the dead letters are redriven, and all is as the batch computation says', async () => {
    await miniStack.deploy('Bookings')
    await bookings.takeOver()
    const { functionName } = bookings.stage('booking-requests')
    const redrive = ['dead-letters', 'redrive', ...queue(), '--function', functionName, '--reason', 'step-failed']
    const { code, output } = await millrace(...redrive)
    expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining('2 done') })
    await bookings.settle()
    const [, round] = check.rounds
    await check.requests.putBookings([...(round?.inGrace ?? []), ...(round?.tooLate ?? []), ...check.closing(1)])
    await bookings.settle()
    await check.expectEqualToBatch()
    expect(await deadLetters()).toEqual(['not-json'])
  }, 300_000)

  test('flights: what becomes of each report, hours, late flights and the states of airports equal batch computations', async () => {
    const flights = await DrivenApplication.start(clients, 'Flights')
    try {
      await flights.announce()
      const check = await FlightsCheck.open(clients, flights)
      await check.put(inputRecords(drawnFlights, 8))
      await flights.settle()
      await check.put(check.closing)
      await flights.settle()
      await check.expectEqualToBatch()
    } finally {
      await flights.stop()
    }
  }, 300_000)
})

/** A partial failure: the record that is to come again, with all behind it. */
const reporting = (itemIdentifier: string) => ({
  kind: 'answered',
  payload: { batchItemFailures: [{ itemIdentifier }] },
})
