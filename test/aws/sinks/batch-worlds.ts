/** What stands behind the sinks of SQS, EventBridge and Firehose in tests: services that keep what they take and refuse by plan. */
import type { PutEventsCommand, PutEventsCommandOutput, PutEventsRequestEntry } from '@aws-sdk/client-eventbridge'
import type { PutRecordBatchCommand, PutRecordBatchCommandOutput } from '@aws-sdk/client-firehose'
import type {
  SendMessageBatchCommand,
  SendMessageBatchCommandOutput,
  SendMessageBatchRequestEntry,
} from '@aws-sdk/client-sqs'
import type { Sink } from '../../../lib/runtime/sink.ts'
import type { Probe, Refusal, SinkUnderTest } from '../../../lib/testing/index.ts'

/** A refusal of one entry. */
export interface Refused {
  readonly code: string
  readonly message?: string
  /** SQS only. */
  readonly senderFault?: boolean
}

abstract class StubService<Entry> {
  readonly stored: Entry[] = []
  readonly requests: (readonly Entry[])[] = []
  refuse: (entry: Entry) => Refused | undefined = () => undefined
  /** Throws where the whole request fails. */
  fail: (requestNumber: number) => void = () => undefined

  protected async take(entries: readonly Entry[]): Promise<(Refused | undefined)[]> {
    this.requests.push(entries)
    await Promise.resolve()
    this.fail(this.requests.length)
    return entries.map((entry) => {
      const refused = this.refuse(entry)
      if (refused === undefined) this.keep(entry)
      return refused
    })
  }

  protected keep(entry: Entry): void {
    this.stored.push(entry)
  }
}

/** A queue. A FIFO one drops what comes with an id that it has seen, and says that it took it. */
export class StubQueue extends StubService<SendMessageBatchRequestEntry> {
  async send({ input }: SendMessageBatchCommand): Promise<SendMessageBatchCommandOutput> {
    const entries = input.Entries ?? []
    const refusals = await this.take(entries)
    return {
      $metadata: {},
      Successful: entries
        .filter((_, i) => refusals[i] === undefined)
        .map(({ Id }) => ({ Id, MessageId: 'm', MD5OfMessageBody: '' })),
      Failed: entries.flatMap(({ Id }, i) => {
        const refused = refusals[i]
        return refused
          ? [{ Id, Code: refused.code, Message: refused.message ?? '', SenderFault: refused.senderFault ?? false }]
          : []
      }),
    }
  }

  protected override keep(entry: SendMessageBatchRequestEntry): void {
    const id = entry.MessageDeduplicationId
    const isRepeat = id !== undefined && this.stored.some((kept) => kept.MessageDeduplicationId === id)
    if (!isRepeat) super.keep(entry)
  }
}

export class StubBus extends StubService<PutEventsRequestEntry> {
  async send({ input }: PutEventsCommand): Promise<PutEventsCommandOutput> {
    const refusals = await this.take(input.Entries ?? [])
    return {
      $metadata: {},
      FailedEntryCount: refusals.filter(Boolean).length,
      Entries: refusals.map((refused) =>
        refused ? { ErrorCode: refused.code, ErrorMessage: 'by plan' } : { EventId: 'e' },
      ),
    }
  }
}

export class StubFirehose extends StubService<string> {
  async send({ input }: PutRecordBatchCommand): Promise<PutRecordBatchCommandOutput> {
    const texts = (input.Records ?? []).map(({ Data }) => Buffer.from(Data ?? '').toString())
    const refusals = await this.take(texts)
    return {
      $metadata: {},
      FailedPutCount: refusals.filter(Boolean).length,
      RequestResponses: refusals.map((refused) =>
        refused ? { ErrorCode: refused.code, ErrorMessage: 'by plan' } : { RecordId: 'r' },
      ),
    }
  }
}

/** One of the services as the world of a sink under conformance checks; `probeOf` reads back what an entry says. */
export function conformanceWorld<Entry>(
  service: StubService<Entry>,
  sink: Sink<Probe, unknown>,
  { probeOf, code, idempotent = false }: { probeOf: (entry: Entry) => Probe; code: string; idempotent?: boolean },
): SinkUnderTest {
  return {
    sink,
    idempotent,
    stored: async () => service.stored.map(probeOf),
    refuse({ key, times, refused }: Refusal) {
      let left = times
      service.refuse = (entry) => {
        if (probeOf(entry).key !== key || left-- <= 0) return undefined
        refused()
        return { code }
      }
    },
  }
}
