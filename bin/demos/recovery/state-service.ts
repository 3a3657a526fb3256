/**
 * An embedded DynamoDB in a thread of its own, as AWS's is a service of its own: what it holds must not slow down whoever is
 * measured. Its state table is filled before the run, past the service: each user's item is put into the model as the stage itself
 * would have written it after no visit.
 */
import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { visitsApp } from '../../../functions/visits/topology.ts'
import { ttlAttribute, writeKeyItem } from '../../../lib/aws/state-table/items.ts'
import type { Item as ItemKey } from '../../../lib/emulator/dynamodb/index.ts'
import { startDynamoService } from '../../../lib/local/services/dynamodb.ts'
import { tableNameOf } from '../../../lib/plan/plan.ts'
import { keyItemKey } from '../../../lib/state/key-encoding.ts'
import { stateTable } from '../../../lib/testing/state-table.ts'

export const stage = 'by-user'
const TableName = tableNameOf(visitsApp.name, stage)

export const userOf = (number: number): string => `user-${String(number).padStart(7, '0')}`

/** What the thread is asked for. */
type Request = 'visits' | 'close'

export interface StateService {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string
  /** The sum of all counts, and how many users have one. */
  total(): Promise<Total>
  close(): Promise<void>
}

export interface Total {
  readonly users: number
  readonly visits: number
}

/** Starts the service with the state of so many users. */
export async function startStateService(users: number): Promise<StateService> {
  // A million items take about 1.5 GB here; Node's own limit depends on the machine.
  const thread = new Worker(new URL(import.meta.url), {
    workerData: { users },
    resourceLimits: { maxOldGenerationSizeMb: 8_192 },
  })
  const [url] = (await once(thread, 'message')) as [string]
  const ask = async (request: Request) => {
    const answered = once(thread, 'message')
    thread.postMessage(request)
    const [answer] = await answered
    return answer
  }
  return {
    url,
    total: async () => (await ask('visits')) as Total,
    close: async () => {
      await ask('close')
      await thread.terminate()
    },
  }
}

type Service = Awaited<ReturnType<typeof startDynamoService>>

async function serve(users: number): Promise<void> {
  // Nothing in this state expires, and looking for what has takes a second of a million items.
  const service = await startDynamoService({ sweepEveryMs: 0 })
  fill(service, users)
  parentPort?.on('message', async (request: Request) => {
    if (request === 'close') await service.close()
    parentPort?.postMessage(request === 'visits' ? totalOf(service) : undefined)
  })
  parentPort?.postMessage(service.url)
}

function fill({ model }: Service, users: number): void {
  model.call('CreateTable', { TableName, ...stateTable })
  model.call('UpdateTimeToLive', {
    TableName,
    TimeToLiveSpecification: { AttributeName: ttlAttribute, Enabled: true },
  })
  for (let number = 0; number < users; number++) {
    const user = userOf(number)
    const item = { position: 0, states: { count: { user, visits: 0 } }, expiresAtSeconds: undefined }
    model.call('PutItem', { TableName, Item: writeKeyItem(keyItemKey(user), item) as never })
  }
}

function totalOf({ model }: Service): Total {
  let [users, visits] = [0, 0]
  let from: ItemKey | undefined
  do {
    const { Items = [], LastEvaluatedKey } = model.call('Scan', { TableName, ...(from && { ExclusiveStartKey: from }) })
    for (const { states } of Items) {
      const count = states?.M?.count?.M?.visits?.N
      if (count === undefined) continue
      users += 1
      visits += Number(count)
    }
    from = LastEvaluatedKey
  } while (from !== undefined)
  return { users, visits }
}

if (!isMainThread) await serve((workerData as { readonly users: number }).users)
