import { broker, withOwnBroker } from '../broker.ts'
import { modes, produce, unfinished, untilCommitted, withSystems } from './running.ts'

jest.setTimeout(600_000)

withOwnBroker('a broker that goes away by TERM, and again by KILL', () => {
  test('changes nothing of what is kept and what comes out, in either mode', async () => {
    await withSystems(modes, async (running) => {
      await produce(running, 0)
      await untilCommitted(running)
      expect(await unfinished(running)).toBeGreaterThan(0)
      await broker('term')
      // It is sent while nobody takes it, and waits.
      const sending = produce(running, 1)
      sending.catch(() => undefined)
      await broker('restart')
      await sending
      await untilCommitted(running, ({ parts: [first] }) => first.length)
      expect(await unfinished(running)).toBeGreaterThan(0)
      await broker('kill')
      await broker('restart')
    })
  })
})
