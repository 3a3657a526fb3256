/**
 * Millrace is upgraded in place: the release before has deployed the application, with its own stack and its own code, and has left
 * windows open; this one is deployed over it, part by part.
 *
 *     phase      settings   code of the source's stage   code of the keyed stage   who made the settings and the code
 *     before     former     former                       former                    the release before
 *     mixed      present    present                      former                    the keyed stage is updated last
 *     upgraded   present    present                      present
 *     old words  former     present                      present                   Lambda takes code and settings one after the other
 *     undone     present    present                      former                    a deployment that is rolled back
 *     upgraded   present    present                      present
 *
 * In each phase bookings come, and in the end all is as a batch computation says.
 */
import { DescribeStackResourcesCommand } from '@aws-sdk/client-cloudformation'
import { GetFunctionConfigurationCommand, UpdateFunctionConfigurationCommand } from '@aws-sdk/client-lambda'
import type { SentBooking } from '../../bin/demos/bookings/rounds.ts'
import { type StandInClients, standInClients } from '../../bin/deploy/clients.ts'
import { BookingsCheck, booking } from './bookings-check.ts'
import { needsNewerFrame } from './bookings-of-now.ts'
import { deadLettersOf } from './deployed-queue.ts'
import { DrivenApplication, until } from './driven-application.ts'
import { describeDeployed } from './gate.ts'
import { assemblyOf, MiniStack } from './mini-stack.ts'

const stackName = 'Upgraded'
type Variables = Readonly<Record<string, string>>

describeDeployed('an application that the release before has deployed', () => {
  const miniStack = MiniStack.shared()
  let clients: StandInClients
  let application: DrivenApplication
  let check: BookingsCheck
  /** What the release before told each function. */
  let formerSettings: ReadonlyMap<string, Variables>
  let formerIds: ReadonlyMap<string, string>

  beforeAll(async () => {
    clients = standInClients(miniStack.url)
    await miniStack.deployLocal(stackName, `--app=${assemblyOf('former')}`)
    application = await DrivenApplication.start(clients, stackName)
    check = await BookingsCheck.open(clients, application)
    formerSettings = await settings()
    formerIds = await keptIds(clients)
  }, 300_000)

  afterAll(async () => {
    await application?.stop()
    clients?.destroy()
  }, 60_000)

  const functionNames = () => application.stack.stages.map(({ functionName }) => functionName)
  const settings = async () => {
    const found = functionNames().map(async (FunctionName): Promise<[string, Variables]> => {
      const { Environment } = await clients.lambda.send(new GetFunctionConfigurationCommand({ FunctionName }))
      return [FunctionName, Environment?.Variables ?? {}]
    })
    return new Map(await Promise.all(found))
  }
  const setSettings = async (all: ReadonlyMap<string, Variables>) => {
    for (const [FunctionName, Variables] of all) {
      await clients.lambda.send(new UpdateFunctionConfigurationCommand({ FunctionName, Environment: { Variables } }))
    }
  }
  const deploy = async (id: string) => {
    await miniStack.deploy(id)
    await application.takeOver()
  }
  /** Waits until the keyed stage has said, of what came after `since`, that only a newer release can read it. */
  const standsStill = (code: string, since: number) =>
    until(
      () => `the keyed stage answers ${code}: ${application.problems().join('; ')}`,
      () => application.invocations.slice(since).some(({ stage, log }) => stage === 'by-hotel' && log.includes(code)),
    )
  const putRound = (index: number, part: (sent: readonly SentBooking[]) => readonly SentBooking[]) =>
    check.requests.putBookings(part(check.rounds[index]?.inTime ?? []))
  const firstHalf = <T>(all: readonly T[]) => all.slice(0, all.length / 2)
  const secondHalf = <T>(all: readonly T[]) => all.slice(all.length / 2)

  test('it runs under the release before, and leaves windows open', async () => {
    await application.announce()
    await putRound(0, firstHalf)
    await application.settle()
    expect((await check.lastRevisions()).size).toBeGreaterThan(0)
  }, 300_000)

  test('what holds data is taken over as it is, and the keyed stage goes on while it is of the release before', async () => {
    await deploy('Mixed')
    expect(await keptIds(clients)).toEqual(formerIds)
    expect(await settings()).not.toEqual(formerSettings)
    const since = application.invocations.length
    const known = (await check.lastRevisions()).size
    await putRound(0, secondHalf)
    // At once: what it says of a silent source counts the time since its last record.
    expect(await application.announce()).toMatchObject({ kind: 'answered' })
    await application.settle()
    expect((await check.lastRevisions()).size).toBeGreaterThan(known)
    expect(application.invocations.slice(since).map(({ log }) => log)).not.toContainEqual(
      expect.stringMatching(/newer|"level":"ERROR"/),
    )
  }, 300_000)

  test('a frame that only this release can read makes it wait, and nothing is lost when it is upgraded', async () => {
    const [round] = check.rounds
    const since = application.invocations.length
    // Its window is open, and all others of the round are behind it.
    const newestMs = round?.inTime.at(-1)?.booking.bookedAt ?? 0
    await check.requests.putBookings([{ booking: booking(needsNewerFrame, 'hotel-1', newestMs), shard: 0 }])
    await standsStill('frame-newer', since)
    await check.requests.putBookings([...(round?.inGrace ?? []), ...(round?.tooLate ?? []), ...check.closing(0)])
    await deploy('Upgraded')
    await application.settle()
    await check.expectEqualToBatch()
  }, 300_000)

  test('its code reads the settings as the release before wrote them', async () => {
    const present = await settings()
    await setSettings(formerSettings)
    expect(await settings()).toEqual(formerSettings)
    await putRound(1, firstHalf)
    expect(await application.announce()).toMatchObject({ kind: 'answered' })
    await application.settle()
    await setSettings(present)
  }, 300_000)

  test('where the deployment is undone the keyed stage waits, and goes on when it is done again', async () => {
    const since = application.invocations.length
    await deploy('Mixed')
    await putRound(1, secondHalf)
    await standsStill('newer-format', since)
    const [, round] = check.rounds
    await deploy('Upgraded')
    await application.settle()
    await check.requests.putBookings([...(round?.inGrace ?? []), ...(round?.tooLate ?? []), ...check.closing(1)])
    await application.settle()
    await check.expectEqualToBatch()
    expect(await deadLettersOf(clients, application.stage('by-hotel').bindings)).toEqual([])
  }, 300_000)
})

/** The physical ids of streams, tables and queues, by their logical ids. */
async function keptIds({ cloudFormation }: StandInClients): Promise<ReadonlyMap<string, string>> {
  const { StackResources = [] } = await cloudFormation.send(new DescribeStackResourcesCommand({ StackName: stackName }))
  const kept = StackResources.filter(({ ResourceType = '' }) =>
    /Kinesis::Stream|DynamoDB|SQS::Queue$/.test(ResourceType),
  )
  expect(kept.length).toBeGreaterThan(5)
  return new Map(
    kept.map(({ LogicalResourceId = '', PhysicalResourceId = '' }) => [LogicalResourceId, PhysicalResourceId]),
  )
}
