/**
 * The same stacks where IAM is enforced: each deployed function has the grants of its role and no others. They suffice for records,
 * windows, dead letters and announcements; without one of them its stage stands still, so the check can fail.
 */
import {
  DescribeStacksCommand,
  GetTemplateCommand,
  type Parameter,
  UpdateStackCommand,
} from '@aws-sdk/client-cloudformation'
import { type StandInClients, standInClients } from '../../bin/deploy/clients.ts'
import { BookingsCheck } from './bookings-check.ts'
import { DrivenApplication, until } from './driven-application.ts'
import { describeDeployed } from './gate.ts'
import { MiniStack } from './mini-stack.ts'

describeDeployed('where IAM is enforced', () => {
  let miniStack: MiniStack
  let clients: StandInClients
  let bookings: DrivenApplication
  let check: BookingsCheck

  beforeAll(async () => {
    miniStack = await MiniStack.start({ AUTH: 'true' })
    clients = standInClients(miniStack.url)
    await miniStack.bootstrap()
    await miniStack.deploy('Guarded')
    bookings = await DrivenApplication.start(clients, 'Bookings')
    check = await BookingsCheck.open(clients, bookings)
  }, 300_000)

  afterAll(async () => {
    await bookings?.stop()
    clients?.destroy()
    await miniStack?.stop()
  }, 60_000)

  test('the grants of the stages and of the announcer suffice', async () => {
    const [round] = check.rounds
    expect(await bookings.announce()).toMatchObject({ kind: 'answered' })
    await check.requests.putBookings(round?.inTime ?? [])
    await check.requests.put([{ data: Buffer.from('no JSON'), partitionKey: 'no JSON', shard: 0 }])
    await bookings.settle()
    await check.requests.putBookings([...(round?.inGrace ?? []), ...(round?.tooLate ?? []), ...check.closing(0)])
    await bookings.settle()
    expect(await bookings.announce()).toMatchObject({ kind: 'answered' })
    await check.expectEqualToBatch()
    expect(denials(bookings)).toEqual([])
  }, 300_000)

  test('without one grant its stage stands still, and goes on when it is given back', async () => {
    const whole = await templateOf(clients)
    await update(clients, without('dynamodb:PutItem', whole))
    const [, round] = check.rounds
    await check.requests.putBookings([...(round?.inTime ?? []), ...check.closing(1)])
    await until(
      () => 'a function is denied what it was granted before',
      () => denials(bookings).length > 0,
    )
    await update(clients, whole)
    await bookings.settle()
    await check.expectEqualToBatch()
  }, 300_000)
})

/** Invocations whose log tells of a call that was refused for good: of a table, of a stream or of a queue. */
const denials = ({ invocations }: DrivenApplication) =>
  invocations.filter(({ log }) => /state-table-unusable|sink-misconfigured|AccessDenied|not authorized/.test(log))

interface Template {
  readonly Resources: Readonly<Record<string, { readonly Type: string; readonly Properties?: unknown }>>
}

/** Without its white space: a template that comes in the call itself has at most 51,200 bytes. */
async function templateOf({ cloudFormation }: StandInClients): Promise<string> {
  const { TemplateBody = '' } = await cloudFormation.send(new GetTemplateCommand({ StackName: 'Bookings' }))
  return JSON.stringify(JSON.parse(TemplateBody))
}

/** The template, with the action taken out of all policies. */
function without(action: string, template: string): string {
  const stack: Template = JSON.parse(template)
  const changed = JSON.stringify(stack, (_name, value) =>
    Array.isArray(value) ? value.filter((one) => one !== action) : value,
  )
  expect(changed.length).toBeLessThan(JSON.stringify(stack).length)
  return changed
}

async function update({ cloudFormation }: StandInClients, TemplateBody: string): Promise<void> {
  const own = { StackName: 'Bookings' }
  const stack = async () => (await cloudFormation.send(new DescribeStacksCommand(own))).Stacks?.[0]
  const Parameters = (await stack())?.Parameters?.map(
    ({ ParameterKey }): Parameter => ({ ParameterKey, UsePreviousValue: true }),
  )
  await cloudFormation.send(
    new UpdateStackCommand({ ...own, TemplateBody, Parameters, Capabilities: ['CAPABILITY_IAM'] }),
  )
  await until(
    () => 'the stack is updated',
    async () => (await stack())?.StackStatus === 'UPDATE_COMPLETE',
  )
}
