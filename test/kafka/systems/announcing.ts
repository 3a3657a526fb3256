/**
 * The announcer of an application on the broker. Silence says nothing until the input has ended, so that what is late does not depend
 * on how long a fault lasts; then every window closes.
 */
import { announcerPorts } from '../../../lib/aws/handler/announcer-ports.ts'
import { OpenKafka } from '../../../lib/aws/kafka/open-kafka.ts'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { describeError } from '../../../lib/core/errors.ts'
import { localKinesisClient } from '../../../lib/local/run/streams.ts'
import { localDynamoDBClient } from '../../../lib/local/run/tables.ts'
import { type Plan, tableNameOf } from '../../../lib/plan/plan.ts'
import type { TopicPlace } from '../../../lib/plan/stage-bindings.ts'
import { announce } from '../../../lib/runtime/announcer/announcer.ts'
import type { AnnouncerPorts } from '../../../lib/runtime/announcer/knowledge.ts'

const everyMs = 300
/** A round that hangs at a broker that went away. */
const roundMs = 10_000
const logger = { info: () => undefined, warn: () => undefined, error: () => undefined }

export class Announcing {
  lastFailure: string | undefined
  /** True once the input has ended and nothing is said any more. */
  isSettled = false
  readonly #planned: Plan
  readonly #ports: AnnouncerPorts
  readonly #close: () => Promise<void>
  readonly #stopping = new AbortController()
  #hasEnded = false
  #running: Promise<void> | undefined

  constructor(planned: Plan, dynamodbUrl: string, placeOf: (stage: string) => TopicPlace) {
    this.#planned = planned
    const kafka = new OpenKafka({}, { clock: systemClock, logger })
    const dynamodb = localDynamoDBClient(dynamodbUrl)
    const kinesis = localKinesisClient('http://127.0.0.1:1')
    this.#ports = announcerPorts(
      planned,
      { kafka, dynamodb, kinesis, logger },
      { streamOf: placeOf, tableOf: (stage) => tableNameOf(planned.topology, stage) },
    )
    this.#close = async () => {
      dynamodb.destroy()
      kinesis.destroy()
      await kafka.close()
    }
  }

  start(): void {
    this.#running ??= this.#run()
  }

  endInput(): void {
    this.#hasEnded = true
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
    await this.#close()
  }

  async #run(): Promise<void> {
    const stopped = this.#stopping.signal
    while (!stopped.aborted) {
      const hasEnded = this.#hasEnded
      const idleMs = hasEnded ? () => Number.POSITIVE_INFINITY : undefined
      const signal = AbortSignal.any([stopped, AbortSignal.timeout(roundMs)])
      try {
        const said = await announce({ planned: this.#planned, ports: this.#ports, signal, idleMs })
        this.isSettled = hasEnded && said.length === 0
      } catch (error) {
        this.lastFailure = describeError(error).message
      }
      await systemClock.sleep(everyMs, stopped)
    }
  }
}
