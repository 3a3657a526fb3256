import {
  type Acl,
  AclOperations,
  AclPermissionTypes,
  Admin,
  ResourcePatternTypes,
  ResourceTypes,
} from '@platformatic/kafka'
import { systemClock } from '../../../lib/aws/system-clock.ts'
import { closing, plain, withOwnBroker } from '../broker.ts'
import { modes, produce, type Running, untilCommitted, withSystems } from './running.ts'
import { until } from './until.ts'

jest.setTimeout(600_000)

/** A real minute. */
const refusedMs = 60_000

/** What the stages of a system write: their sinks, and the topics of keyed stages. Not the dead letters. */
const written = ({ system, application }: Running): readonly string[] => [
  ...system.sinks,
  ...application.stages.filter(({ kind }) => kind === 'keyed').map(({ name }) => name),
]

/**
 * Who comes without a login may do all but write to the topic, as where a permission was taken away. What it may do is said too: a
 * topic of which anything is said is otherwise closed.
 */
const refusalsOf = (topic: string): readonly Acl[] =>
  [
    { operation: AclOperations.ALL, permissionType: AclPermissionTypes.ALLOW },
    { operation: AclOperations.WRITE, permissionType: AclPermissionTypes.DENY },
  ].map((rule) => ({
    resourceType: ResourceTypes.TOPIC,
    resourceName: topic,
    resourcePatternType: ResourcePatternTypes.LITERAL,
    principal: 'User:ANONYMOUS',
    host: '*',
    ...rule,
  }))

const counts = (running: readonly Running[]) =>
  Promise.all(
    running.map((one) =>
      Promise.all(written(one).map(async (name) => [name, (await one.application.count(name)).records] as const)),
    ),
  )

withOwnBroker('a producer that the broker refuses for a minute', () => {
  test('loses nothing and doubles nothing, gives up no record, and goes on by itself, in either mode', async () => {
    const admin = new Admin({ clientId: 'millrace-test', ...plain })
    closing.push(() => admin.close())
    await withSystems(modes, async (running) => {
      const refusals = running.flatMap((one) =>
        written(one).flatMap((name) => refusalsOf(one.application.topicOf(name))),
      )
      await produce(running, 0)
      await untilCommitted(running)
      await admin.createAcls({ creations: refusals })
      const refusedAtMs = systemClock.nowMs()
      await produce(running, 1)
      for (const { application } of running) {
        const [{ mapping }] = application.stages as [(typeof application.stages)[0]]
        await until(
          () => mapping.status().pollers.some(({ failures }) => failures > 0),
          () => application.status(),
        )
      }
      const before = await counts(running)
      await until(
        () => systemClock.nowMs() >= refusedAtMs + refusedMs,
        () => 'the minute',
      )
      expect(await counts(running)).toEqual(before)
      await admin.deleteAcls({ filters: refusals })
    })
  })
})
