import { Random } from '../../../lib/testing/simulator/random.ts'
import { withBroker } from '../broker.ts'
import { killAtOutputs, killAtWrites } from './killing.ts'
import { modes, produce, withSystems } from './running.ts'

jest.setTimeout(600_000)

withBroker('workers that are killed in the middle of batches and replaced', () => {
  test.each(modes)('change nothing of what is kept and what comes out: %s', async (mode) => {
    await withSystems([mode], async (running) => {
      for (const { application } of running) killAtWrites(application, new Random(application.mode))
      const sending = produce(running, 0).then(() => produce(running, 1))
      sending.catch(() => undefined)
      await Promise.all(
        running.map(async ({ application, system: { source, sinks, parts } }) => {
          const [sink = ''] = sinks
          const sent = parts.flat().length
          if (application.stages.length === 1) await killAtOutputs(application, { source, sink, sent })
        }),
      )
      await sending
      await Promise.all(running.map(({ application }) => application.settle()))
      for (const { application } of running) {
        for (const { topic, failures } of application.stages) {
          const killed = failures.filter((reason) => reason.includes('signal SIGKILL'))
          expect({ topic, wasKilled: killed.length > 0 }).toEqual({ topic, wasKilled: true })
        }
      }
    })
  })
})
