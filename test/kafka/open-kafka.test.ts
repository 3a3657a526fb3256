import { openPorts } from '../../lib/aws/handler/open-ports.ts'
import { OpenKafka } from '../../lib/aws/kafka/open-kafka.ts'
import { Topology, text as texts } from '../../lib/index.ts'
import { plan } from '../../lib/plan/plan.ts'
import { bindingsVariable, type StageBindings } from '../../lib/plan/stage-bindings.ts'
import type { DeadLetter } from '../../lib/runtime/dead-letter.ts'
import { outputs } from '../aws/sink-worlds.ts'
import { closing, never, newTopic, plain, reader, recordsIn, text, withBroker } from './broker.ts'

const cluster = { brokers: plain.bootstrapBrokers as string[], auth: { kind: 'none' }, tls: false } as const

withBroker('a function that is bound to Kafka', () => {
  const app = new Topology('rides')
  const source = app.source('rides', texts())
  source.keyBy('by-line', (line) => line).reduce('last', (_, line) => line, { emit: 'on-update' })
  source.to(app.sink<string>('out', { key: (line) => line }))

  test('writes outputs, dead letters and frames to its topics, and knows their partitions', async () => {
    const [topic, out, dead, byLine] = await Promise.all([newTopic(2), newTopic(), newTopic(), newTopic(2)])
    const bindings: StageBindings = {
      formatVersion: 1,
      topology: 'rides',
      sources: [{ name: 'rides', kind: 'kafka', topic, cluster, mode: 'on-demand' }],
      sinks: [{ name: 'out', kind: 'kafka', topic: out, cluster }],
      deadLetters: { kind: 'kafka', topic: dead, cluster },
      state: { tableName: 'rides' },
      feeds: [{ stage: 'by-line', slots: 64, topic: byLine, partitions: 2, cluster }],
    }
    const opened = jest.spyOn(OpenKafka.prototype, 'lineage')
    closing.push(() => (opened.mock.contexts[0] as OpenKafka).close())
    const ports = await openPorts(plan(app), { [bindingsVariable]: JSON.stringify(bindings) })
    const sink = ports.sink('out')
    const [item] = outputs(['a'], (line) => line).map((output) => sink?.prepare(output))
    expect(await sink?.deliver([item], { signal: never() })).toEqual([{ status: 'delivered' }])
    expect((await recordsIn(out)).map(({ key, value }) => [text(key), text(value)])).toEqual([['a', '"a"']])

    const letter = { id: 'rides/0/7', topology: 'rides', stage: 'rides', failedAtMs: 0, headers: [] } as unknown
    const entry = ports.deadLetters.prepare({ value: letter as DeadLetter } as never)
    expect(await ports.deadLetters.deliver([entry], { signal: never() })).toEqual([{ status: 'delivered' }])
    const [kept] = await recordsIn(dead)
    expect([text(kept?.key), JSON.parse(text(kept?.value))]).toEqual(['rides/0/7', letter])

    await ports.frames?.('by-line')?.publish([{ slot: 3, bytes: Buffer.from('frame') }], never())
    expect((await recordsIn(byLine, 1)).map(({ value }) => text(value))).toEqual(['frame'])

    expect(await ports.lineage?.('rides')?.list(never())).toHaveLength(2)
    expect(await ports.lineage?.('by-line')?.isCaughtUp('1', undefined, never())).toBe(false)
    expect(await ports.lineage?.('rides')?.identity?.(never())).toBe((await reader().topic(topic, never()))?.id)
    expect(ports.readsAnswers?.('rides')).toBe(false)
  })

  test('reads and feeds the topic of a keyed stage only while it is what the deployment said', async () => {
    const topic = await newTopic(2)
    const topicId = (await reader().topic(topic, never()))?.id ?? ''
    const said = (changes: { readonly topicId?: string; readonly partitions?: number }) => {
      const keyed = { topic, cluster, topicId, partitions: 2, ...changes }
      return openPorts(plan(app), {
        [bindingsVariable]: JSON.stringify({
          formatVersion: 1,
          topology: 'rides',
          sources: [{ name: 'by-line', kind: 'kafka', ...keyed }],
          sinks: [],
          deadLetters: { kind: 'kafka', topic, cluster },
          state: { tableName: 'rides' },
          feeds: [{ stage: 'next', slots: 64, ...keyed }],
        }),
      })
    }
    const opened = jest.spyOn(OpenKafka.prototype, 'lineage')
    closing.push(() => Promise.all(opened.mock.contexts.map((kafka) => (kafka as OpenKafka).close())))
    const frame = { slot: 3, bytes: Buffer.from('frame') }
    const as = await said({})
    expect(await as.lineage?.('by-line')?.list(never())).toHaveLength(2)
    await as.frames?.('next')?.publish([frame], never())
    for (const [changes, code] of [
      [{ topicId: '00000000-0000-4000-8000-000000000000' }, 'recreated-topic'],
      [{ partitions: 4 }, 'partitions-changed'],
    ] as const) {
      const other = await said(changes)
      await expect(other.lineage?.('by-line')?.list(never())).rejects.toMatchObject({ code })
      await expect(other.lineage?.('next')?.list(never())).rejects.toMatchObject({ code })
      await expect(other.frames?.('next')?.publish([frame], never())).rejects.toMatchObject({ code })
    }
    expect(await recordsIn(topic, 1)).toHaveLength(1)
  })
})
