/** When an alarm goes off, as CloudFormation is told, is what docs/operations.md says of it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Alarm, CfnAlarm } from 'aws-cdk-lib/aws-cloudwatch'
import { bookingRequests, bookingsApp, hotelBookings, lateBookings } from '../../../functions/bookings/topology.ts'
import { bind, KinesisSink, KinesisSource, StreamApplication } from '../../../lib/cdk/index.ts'
import { alarmRules, type StageAlarm } from '../../../lib/cdk/watch/alarm-rules.ts'
import { linesIn } from '../kafka/world.ts'
import { ridesIn } from '../rides.ts'
import { entry, newStack, newStream } from '../world.ts'

const page = readFileSync(join(__dirname, '../../../docs/operations.md'), 'utf8')
const { alarms } = ridesIn(newStack())

/** The second column of the alarm's row. */
const goesOffWhere = (name: string): string =>
  new RegExp(`^\\| \`${name}\` \\| ([^|]+) \\|`, 'm').exec(page)?.[1] ?? 'no row'

function thresholdText(name: string, { threshold, comparisonOperator }: CfnAlarm): string {
  const isBelow = comparisonOperator === 'LessThanThreshold'
  if (name === 'announcer silent') return 'not invoked'
  if (name === 'collapse') return isBelow && threshold === 0.5 ? 'fewer than half' : `half is not ${threshold}`
  if (isBelow) return 'below'
  // Of the timeout of a minute.
  if (name === 'duration') return `over ${(threshold ?? 0) / 600} %`
  if (/age|watermark-lag/.test(name)) return `over ${(threshold ?? 0) / 60_000} min`
  return threshold === 0 ? '' : `over ${threshold?.toLocaleString('en-US')} `
}

function periodText(name: string, { period = 0, evaluationPeriods = 0, datapointsToAlarm }: CfnAlarm): string {
  // The announcer counts in rounds.
  if (name === 'announcer errors') return `for ${datapointsToAlarm} of them in a row`
  if (name === 'announcer silent') return `for ${datapointsToAlarm} rounds`
  const minutes = (period * evaluationPeriods) / 60
  if (datapointsToAlarm !== evaluationPeriods) return `in ${datapointsToAlarm} of ${minutes} min`
  if (evaluationPeriods === 1) return ''
  return minutes === 60 ? 'for an hour' : `for ${minutes} min`
}

const missingTexts: Readonly<Record<string, RegExp>> = {
  notBreaching: /^(?!.*missing)/,
  ignore: /missing keeps the state/,
  missing: /missing says so/,
  breaching: /missing breaches/,
}

/** The alarm of a source that has a skewLimit; the source of the others has none. */
function skewed() {
  const stack = newStack()
  const { alarms: ofBookings } = new StreamApplication(stack, 'Bookings', {
    topology: bookingsApp,
    entry,
    bind: [
      bind(bookingRequests, new KinesisSource(newStream(stack, 'Requests'))),
      bind(hotelBookings, new KinesisSink(newStream(stack, 'Windows'))),
      bind(lateBookings, new KinesisSink(newStream(stack, 'Late'))),
    ],
  })
  return ofBookings?.of('booking-requests', 'skewed')
}

/** Those that the stage of the rides does not have. */
const ofOthers: Partial<Record<StageAlarm, () => Alarm | undefined>> = {
  skewed,
  'offset-lag': () => linesIn(newStack()).alarms?.of('lines', 'offset-lag'),
}
const ofStages = (Object.keys(alarmRules) as StageAlarm[]).map(
  (name) => [name, ofOthers[name]?.() ?? alarms?.of('by-driver', name)] as const,
)
const ofAnnouncer = (['errors', 'silent'] as const).map(
  (name) => [`announcer ${name}`, alarms?.ofAnnouncer(name)] as const,
)

test.each([...ofStages, ...ofAnnouncer])('%s goes off where its row says', (name, alarm) => {
  const told = alarm?.node.defaultChild as CfnAlarm
  const row = goesOffWhere(name)
  expect(row).toContain(thresholdText(name, told))
  expect(row).toContain(periodText(name, told))
  expect(row).toMatch(missingTexts[told.treatMissingData ?? ''] ?? /no such treatment/)
})
