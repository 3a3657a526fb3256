/**
 * Ends the workers of an application by SIGKILL in the middle of their batches, twice in each stage. A stage with state dies at
 * a write of it, before the effect or behind it, when it has published and not committed, or committed and not written its progress; one without
 * when outputs of its batch appear in a sink's topic.
 */
import { DynamoError } from '../../../lib/emulator/dynamodb/index.ts'
import { tableNameOf } from '../../../lib/plan/plan.ts'
import type { Random } from '../../../lib/testing/simulator/random.ts'
import type { BrokerApplication } from './broker-application.ts'
import type { BrokerStage } from './broker-stage.ts'
import { until } from './until.ts'

const mostPerStage = 2
const writes = new Set(['PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem', 'TransactWriteItems'])

/** Kills the workers that are at a batch, at once; true where there was one. */
function strike({ workers }: BrokerStage): boolean {
  const busy = workers.workers().filter(({ state }) => state === 'busy')
  for (const { id } of busy) void workers.kill(id)
  return busy.length > 0
}

/** Kills at writes of the state, while the service that keeps it goes on. */
export function killAtWrites({ dynamodb, planned, stages }: BrokerApplication, random: Random): void {
  const { model } = dynamodb
  const call = model.call.bind(model)
  const victims = stages
    .filter(({ kind }) => kind !== 'stateless')
    .map((stage) => ({ stage, table: tableNameOf(planned.topology, stage.name), left: mostPerStage, next: 4 }))
  model.call = ((name: 'PutItem', input: never) => {
    const victim = writes.has(name) && victims.find(({ table }) => JSON.stringify(input).includes(`"${table}"`))
    if (!victim || victim.left === 0 || --victim.next > 0) return call(name, input)
    victim.left -= 1
    victim.next = random.integer(4, 12)
    if (random.chance(0.5)) {
      strike(victim.stage)
      throw new DynamoError('InternalServerError', 'the process that asked is gone')
    }
    const answer = call(name, input)
    strike(victim.stage)
    return answer
  }) as typeof model.call
}

/** Kills when outputs have appeared since the last kill, until it has done so twice or all that is `sent` to the source is done. */
export async function killAtOutputs(
  application: BrokerApplication,
  { source, sink, sent }: { readonly source: string; readonly sink: string; readonly sent: number },
): Promise<void> {
  const [stage] = application.stages as [BrokerStage]
  let left = mostPerStage
  let seen = 0
  const isOver = async () => {
    const { records } = await application.count(sink)
    const { committed } = await application.count(source)
    if (records > seen && strike(stage)) {
      left -= 1
      seen = records + 20
    }
    return left === 0 || committed >= sent
  }
  await until(isOver, () => application.status())
}
