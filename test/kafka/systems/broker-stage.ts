/** One stage of an application on the broker: worker processes with its bundle, and the mapping that invokes them. */
import { openReader } from '../../../lib/aws/kafka/kafka-client.ts'
import { openGroup } from '../../../lib/aws/kafka/kafka-group.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { KafkaEventSourceMapping, kafkaFormat } from '../../../lib/emulator/event-source-mapping/index.ts'
import { brokerGroup, brokerTopic } from '../../../lib/local/reading/broker-topic.ts'
import { startWorkerPool, type WorkerPool } from '../../../lib/local/workers/index.ts'
import type { StagePlan } from '../../../lib/plan/plan.ts'
import { plain } from '../broker.ts'

export type Mode = 'on-demand' | 'provisioned'

export interface BrokerStageOptions {
  readonly stage: StagePlan
  /** What it reads, with the group of the same name. */
  readonly topic: string
  readonly mode: Mode
  readonly batchSize: number
  readonly handlerFile: string
  readonly environment: Readonly<Record<string, string>>
}

export interface BrokerStage {
  readonly name: string
  readonly kind: StagePlan['kind']
  readonly topic: string
  readonly mapping: KafkaEventSourceMapping
  readonly workers: WorkerPool
  /** Why invocations failed, in order. */
  readonly failures: readonly string[]
  /** The last lines of its log. */
  readonly lines: readonly string[]
  stop(): Promise<void>
}

const pollers = 2
/** Shorter than on AWS, so that what hangs at a broker that went away does not hang for long. */
const timeoutMs = 20_000
const keptLines = 20

export async function startBrokerStage(options: BrokerStageOptions): Promise<BrokerStage> {
  const { stage, topic, mode, batchSize, handlerFile, environment } = options
  const failures: string[] = []
  const lines: string[] = []
  const workers = await startWorkerPool({
    size: pollers,
    ...{ handlerFile, environment, timeoutMs },
    functionName: topic,
    memoryLimitMb: 512,
    // Of many at once, on a busy machine.
    initTimeoutMs: 60_000,
    onLine: (_, _stream, line) => void lines.splice(0, lines.push(line) - keptLines),
    onInvocation({ outcome }) {
      if (outcome.kind === 'function-error') failures.push(outcome.reason)
    },
  })
  const reader = openReader(plain)
  const group = openGroup(plain, { group: topic, topic })
  const mapping = new KafkaEventSourceMapping({
    settings: {
      uuid: topic,
      functionArn: `arn:aws:lambda:us-east-1:000000000000:function:${topic}`,
      startingPosition: 'TRIM_HORIZON',
      ...{ mode, pollers, batchSize },
      maximumBatchingWindowInSeconds: 0,
      functionResponseTypes: ['ReportBatchItemFailures'],
      bisectBatchOnFunctionError: true,
      // A broker that is back is to be noticed soon, and so is a partition that was added.
      emulation: { shardSyncIntervalMs: 1_000, backoff: { initialMs: 100, factor: 2, maxMs: 1_000 } },
    },
    format: kafkaFormat({ topic, bootstrapServers: String(plain.bootstrapBrokers) }),
    reader: brokerTopic(reader, topic),
    group: brokerGroup(group),
    invoker: workers,
    clock: systemClock,
  })
  return {
    ...{ name: stage.name, kind: stage.kind, topic, mapping, workers, failures, lines },
    async stop() {
      await mapping.stop()
      await Promise.all([workers.stop(), group.close(), reader.close()])
    },
  }
}
