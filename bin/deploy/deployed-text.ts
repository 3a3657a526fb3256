/** What was deployed, for people: each stage with its function, stream and table, and the commands that come next. */
import type { DeployedStack, DeployedStage } from './deployed-stack.ts'
import { streamNameOf } from './deployed-stack.ts'

/** A record that the sources of this repository's first applications take. */
const samples: Readonly<Record<string, string>> = {
  flights:
    '{"flight":"AA-1","scheduled":"2026-11-29T08:00:00","delayMinutes":7,"distanceMiles":599,"origin":"ORD","destination":"ATL"}',
  'booking-requests':
    '{"bookingId":"b-1","hotelId":"hotel-1","status":"confirmed","price":120,"bookedAt":1795939200000}',
}

export function deployedLines({ name, stages, announcer }: DeployedStack, endpoint: string): readonly string[] {
  return [
    '',
    name,
    ...stages.flatMap((stage) => stageLines(stage)),
    ...(announcer === undefined ? [] : [`  announcer`, `    function  ${announcer.functionName}`]),
    ...stages.flatMap((stage) => commandLines(stage, endpoint)),
  ]
}

function stageLines({ name, kind, functionName, source, bindings }: DeployedStage): readonly string[] {
  const { deadLetters, state, sinks } = bindings
  return [
    `  ${kind === 'source' ? 'source' : 'keyed stage'} ${name}`,
    `    function  ${functionName}`,
    ...(source.kind === 'kinesis' ? [`    reads     ${streamNameOf(source)}`] : []),
    ...(state === undefined ? [] : [`    table     ${state.tableName}`]),
    ...sinks.map((sink) => `    writes    ${sink.name}${'streamArn' in sink ? `: ${lastPart(sink.streamArn)}` : ''}`),
    ...(deadLetters.kind === 'sqs' ? [`    failed    ${deadLetters.queueUrl}`] : []),
  ]
}

const lastPart = (arn: string): string => arn.slice(arn.lastIndexOf('/') + 1)

function commandLines({ name, kind, source, bindings }: DeployedStage, endpoint: string): readonly string[] {
  if (kind === 'keyed') {
    const table = bindings.state?.tableName
    return [
      `  Look at what "${name}" keeps:`,
      `    npx millrace state list ${name} --table ${table} --endpoint ${endpoint}`,
    ]
  }
  if (source.kind !== 'kinesis') return []
  const put = `aws kinesis put-record --endpoint-url ${endpoint} --region us-east-1 --stream-name ${streamNameOf(source)}`
  return [
    `  Put a record of "${name}":`,
    `    AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test ${put} --partition-key 1 \\`,
    `      --cli-binary-format raw-in-base64-out --data '${samples[name] ?? '{"a":"record of the source, as JSON"}'}'`,
  ]
}
