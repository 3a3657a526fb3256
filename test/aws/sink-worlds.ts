/**
 * What stands behind a sink in tests: a stream, a table, a queue and a bucket that refuse by plan. A refusal is spent
 * when it is answered; without one every request is taken.
 */

import type { AttributeValue, UpdateItemCommand, UpdateItemCommandOutput } from '@aws-sdk/client-dynamodb'
import type { PutRecordsCommand, PutRecordsCommandOutput } from '@aws-sdk/client-kinesis'
import type { KinesisItem } from '../../lib/aws/kinesis/destination.ts'
import type { DeliveryPorts } from '../../lib/aws/ordered-delivery.ts'
import type { Clock } from '../../lib/core/clock.ts'
import { SourceRecord } from '../../lib/core/record.ts'
import type { Output } from '../../lib/runtime/sink.ts'

/** A clock on which sleeping takes no time but is remembered. */
export class InstantClock implements Clock {
  readonly sleptMs: number[] = []

  nowMs(): number {
    return this.sleptMs.reduce((sum, ms) => sum + ms, 0)
  }

  async sleep(ms: number): Promise<void> {
    this.sleptMs.push(ms)
  }
}

export interface LogLine {
  readonly level: string
  readonly message: string
  readonly fields?: unknown
}

export function testPorts(clock: Clock = new InstantClock()): DeliveryPorts & { readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  const log = (level: string) => (message: string, fields?: unknown) => void lines.push({ level, message, fields })
  return { clock, lines, logger: { info: log('info'), warn: log('warn'), error: log('error') }, random: () => 0.5 }
}

export const awsError = (name: string, fields: object = {}): Error =>
  Object.assign(new Error(`${name} happened`), { name, ...fields })

/** Outputs with positions 1, 2, 3 and so on. */
export function outputs<T>(values: readonly T[], keyOf?: (value: T) => string, from = 1): Output<T>[] {
  return values.map((value, i) => ({
    value,
    key: keyOf?.(value),
    index: 0,
    record: new SourceRecord({
      source: 'orders',
      partition: 'shardId-000000000000',
      position: String(from + i),
      arrivalTimeMs: 0,
      payload: null,
    }),
  }))
}

export const never = (): AbortSignal => new AbortController().signal

/** A stream that keeps what it takes. */
export class StubStream {
  readonly stored: KinesisItem[] = []
  readonly requests: (readonly KinesisItem[])[] = []
  /** Gives the error code of a record that is refused. */
  refuse: (record: KinesisItem) => string | undefined = () => undefined
  /** Throws where the whole request fails. */
  fail: (requestNumber: number) => void = () => undefined
  inFlight = 0
  mostInFlight = 0

  async send(command: PutRecordsCommand): Promise<PutRecordsCommandOutput> {
    const records = command.input.Records as KinesisItem[]
    this.requests.push(records)
    this.inFlight++
    this.mostInFlight = Math.max(this.mostInFlight, this.inFlight)
    try {
      await Promise.resolve()
      this.fail(this.requests.length)
      return this.take(records)
    } finally {
      this.inFlight--
    }
  }

  take(records: readonly KinesisItem[]): PutRecordsCommandOutput {
    const answers = records.map((record) => {
      const ErrorCode = this.refuse(record)
      if (ErrorCode) return { ErrorCode, ErrorMessage: 'by plan' }
      this.stored.push(record)
      return { SequenceNumber: String(this.stored.length), ShardId: 'shardId-000000000000' }
    })
    return {
      $metadata: {},
      FailedRecordCount: answers.filter((answer) => 'ErrorCode' in answer).length,
      Records: answers,
    }
  }

  get texts(): string[] {
    return this.stored.map(({ Data }) => Buffer.from(Data).toString())
  }
}

type Item = Record<string, AttributeValue>

/** A table that knows the one kind of update that the sink sends. */
export class StubTable {
  readonly items = new Map<string, Item>()
  readonly updates: UpdateItemCommand['input'][] = []
  /** The updates that changed something, in order. */
  readonly applied: UpdateItemCommand['input'][] = []
  fail: (input: UpdateItemCommand['input']) => void = () => undefined
  /** Throws after the update was applied: its answer is lost. */
  loseAnswer: (input: UpdateItemCommand['input']) => void = () => undefined
  readonly #inFlight: string[] = []
  mostInFlight = 0
  /** True once two updates of one row were in flight together. */
  collided = false

  async send({ input }: UpdateItemCommand): Promise<UpdateItemCommandOutput> {
    const row = JSON.stringify(input.Key)
    this.updates.push(input)
    this.collided ||= this.#inFlight.includes(row)
    this.#inFlight.push(row)
    this.mostInFlight = Math.max(this.mostInFlight, this.#inFlight.length)
    try {
      await Promise.resolve()
      this.fail(input)
      this.#update(row, input)
      this.loseAnswer(input)
      return { $metadata: {} }
    } finally {
      this.#inFlight.splice(this.#inFlight.indexOf(row), 1)
    }
  }

  #update(row: string, input: UpdateItemCommand['input']): void {
    const names = input.ExpressionAttributeNames ?? {}
    const values = input.ExpressionAttributeValues ?? {}
    const name = (reference: string): string => names[reference.trim()] ?? `undefined name ${reference}`
    const item: Item = { ...(this.items.get(row) ?? (input.Key as Item)) }
    expect(input.ConditionExpression).toBe('attribute_not_exists(#position) OR #position<:position')
    const held = item[name('#position')]?.S
    if (held !== undefined && !(held < String(values[':position']?.S)))
      throw awsError('ConditionalCheckFailedException')
    const [, set = '', remove] = /^SET (.*?)(?: REMOVE (.*))?$/.exec(input.UpdateExpression ?? '') ?? []
    for (const clause of set.split(',')) {
      const [reference = '', value = ''] = clause.split('=')
      item[name(reference)] = values[value] as AttributeValue
    }
    for (const reference of remove?.split(',') ?? []) delete item[name(reference)]
    this.items.set(row, item)
    this.applied.push(input)
  }
}
