import { systemClock } from '../../lib/aws/system-clock.ts'
import { KinesisShardReader } from '../../lib/local/reading/kinesis-shard-reader.ts'
import { localKinesisClient } from '../../lib/local/run/streams.ts'
import { startKinesisService } from '../../lib/local/services/kinesis.ts'
import { MillraceProject } from './millrace-project.ts'
import { topologyFile } from './orders-app.ts'
import { PricedOrders } from './priced-orders.ts'

const timeoutMs = 300_000
let project: MillraceProject
let app: PricedOrders

beforeEach(async () => {
  project = await MillraceProject.create()
  app = new PricedOrders(project)
  await app.writeHandler()
})
afterEach(() => project.clear())

const unknownUnit = "(() => { throw new TerminalError('no price for ' + unit, { code: 'unknown-unit' }) })()"

const line = (id: string, unit: string) => `${JSON.stringify({ id, unit })}\n`

/** Runs the input through the version that cannot price barrels: the run has failed where every line is given up. */
async function giveUp(input: string): Promise<void> {
  await app.writeHandler()
  await app.writeTopology(unknownUnit)
  await project.write('orders.ndjson', input)
  expect(await project.result('dev', topologyFile, '--input', 'orders.ndjson', '--once')).toMatchObject({
    code: input.includes('piece') ? 0 : 1,
    stderr: '',
  })
}

/** The open dead letters, without what they held. */
async function open(): Promise<readonly { handle: string; id: string; reason: { code: string } }[]> {
  const { stdout } = await project.result('dead-letters', 'list', '--json')
  return stdout.split('\n').flatMap((text) => (text === '' ? [] : JSON.parse(text)))
}

test(
  'dead letters are listed by reason and shown with their bytes, and only shown ones show what they held',
  async () => {
    await giveUp([line('a', 'piece'), line('b', 'barrel'), '{"id":"\u001b[2J\n', line('c', 'barrel')].join(''))
    const all = await project.result('dead-letters', 'list')
    expect(all).toMatchObject({ code: 0, stderr: '' })
    expect(all.stdout).toMatch(/^3 dead letters of orders-app \(\.millrace\/orders-app\)\n/)
    expect(all.stdout).toMatch(/^[0-9a-f]{8} {2}\S+Z {2}unknown-unit \(step\) {2}orders shardId-000000000000 \d+$/m)
    expect(all.stdout).toMatch(/\n\nunknown-unit \(step\) +2\nnot-json \(decode\) +1\n$/)
    expect(all.stdout).not.toContain('barrel')
    expect(await project.result('dead-letters', 'list', '--reason', 'nonsense')).toEqual({
      code: 0,
      stdout: [
        '0 dead letters of orders-app (.millrace/orders-app)',
        'None has the reason nonsense. The reasons of 3 dead letters:',
        'unknown-unit (step)  2',
        'not-json (decode)    1',
        '',
      ].join('\n'),
      stderr: '',
    })
    const some = await project.result('dead-letters', 'list', '--reason', 'not-json', '--json')
    const [{ handle, id, reason }] = [JSON.parse(some.stdout)]
    expect(reason).toEqual({ code: 'not-json', phase: 'decode', attempts: 1 })
    for (const typed of [handle, handle.slice(0, 6), id]) {
      const shown = await project.result('dead-letters', 'show', typed)
      expect(shown.stdout).toContain(`id           ${handle}  ${id}`)
      expect(shown.stdout).toContain('payload: 11 bytes, UTF-8\n  {"id":"\\u001b[2J\n')
      expect(shown.stdout).toContain('  00000000  7b 22 69 64 22 3a 22 1b 5b 32 4a                 |{"id":".[2J|')
      expect(shown.stdout).toMatch(/^error {8}TerminalError: the payload .* is not JSON$/m)
    }
    expect(await project.result('dead-letters', 'show', 'zzz')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'millrace: There is no dead letter zzz of orders-app (.millrace/orders-app): take an id of the list.\n',
    })
  },
  timeoutMs,
)

test(
  'a redrive before the fix gives up again, one after it applies each record once under its own identity, a third has nothing to do',
  async () => {
    await giveUp(line('a', 'piece') + line('b', 'barrel') + line('c', 'barrel'))
    const [b, c] = await open()
    const before = await project.result('dead-letters', 'redrive', '--all')
    expect(before.code).toBe(1)
    expect(before.stdout).toContain(`${b?.handle}  dead letter again: unknown-unit (step)\n`)
    expect(before.stdout).toContain('0 done, 2 given up again, 0 returned, 0 refused\n')
    expect((await open()).map(({ id }) => id)).toEqual([b?.id, c?.id])

    await app.writeTopology('100')
    const one = await project.result('dead-letters', 'redrive', '--id', String(b?.handle))
    expect([one.code, one.stdout]).toEqual([0, expect.stringContaining(`${b?.handle}  done\n`)])
    expect((await open()).map(({ id }) => id)).toEqual([c?.id])
    const after = await project.result('dead-letters', 'redrive', '--all')
    expect([after.code, after.stdout]).toEqual([0, expect.stringContaining('1 done, 0 given up again')])
    const values = await app.applied()
    expect(Object.values(values)).toHaveLength(3)
    expect(values).toMatchObject({ [`${b?.id}/0`]: { id: 'b', price: 100 }, [`${c?.id}/0`]: { id: 'c', price: 100 } })

    const again = await project.result('dead-letters', 'redrive', '--reason', 'unknown-unit')
    expect([again.code, again.stdout]).toEqual([0, 'Nothing to redrive.\n'])
    const named = await project.result('dead-letters', 'redrive', '--id', String(b?.id))
    expect([named.code, named.stdout]).toEqual([0, `${b?.handle}  redriven already\nNothing to redrive.\n`])
    expect(await app.deliveries()).toHaveLength(3)
    const history = await project.result('dead-letters', 'list', '--include-redriven')
    expect(history.stdout.match(/ redriven \S+Z$/gm)).toHaveLength(2)
  },
  timeoutMs,
)

test(
  'a redrive that is killed in its midst loses nothing, and the next one applies nothing twice',
  async () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f']
    await giveUp(ids.map((id) => line(id, 'barrel')).join(''))
    await app.writeTopology('100')
    await app.writeHandler(3)
    const killed = project.run('dead-letters', 'redrive', '--all')
    await app.deliveredAtLeast(3)
    killed.signal('SIGKILL')
    expect(await killed.ends()).toBe('SIGKILL')
    expect(Object.keys(await app.applied())).toHaveLength(3)
    expect(await open()).toHaveLength(ids.length)
    await app.writeHandler()

    const next = await project.result('dead-letters', 'redrive', '--all')
    expect([next.code, next.stdout]).toEqual([0, expect.stringContaining('6 done, 0 given up again')])
    expect(await open()).toEqual([])
    expect(Object.values(await app.applied())).toHaveLength(ids.length)
    // Some came again, and their identity absorbed them.
    expect((await app.deliveries()).length).toBeGreaterThan(ids.length)
  },
  timeoutMs,
)

test(
  'Ctrl-C ends a redrive behind the record in flight and settles what was done',
  async () => {
    await giveUp(['a', 'b', 'c', 'd', 'e', 'f'].map((id) => line(id, 'barrel')).join(''))
    await app.writeTopology('100')
    await app.writeHandler(2)
    const stopped = project.run('dead-letters', 'redrive', '--all')
    await app.deliveredAtLeast(2)
    stopped.signal('SIGINT')
    await stopped.shows(/^Stopping behind the record in flight\.$/m)
    await app.letGo()
    expect([await stopped.ends(), stopped.stderr]).toEqual([1, ''])
    const [, done, untried] = /^(\d) done, .* refused, (\d) not tried$/m.exec(stopped.stdout) ?? []
    expect([done, untried]).toEqual(['2', '4'])
    expect(await open()).toHaveLength(Number(untried))
    expect(await app.deliveries()).toHaveLength(Number(done))
  },
  timeoutMs,
)

test(
  'beside a run that is up, a redrive reaches its function and not its source stream',
  async () => {
    await giveUp(line('b', 'barrel'))
    await app.writeTopology("(() => { throw new RetryableError('later') })()")
    const dev = project.run('dev', topologyFile)
    await dev.shows(/with Kinesis at/)
    const [letter] = await open()
    const returned = await project.result('dead-letters', 'redrive', '--all')
    expect([returned.code, returned.stderr]).toEqual([1, ''])
    expect(returned.stdout).toContain(
      `${letter?.handle}  returned: the function asks for it again later: its log says why`,
    )
    expect(await open()).toHaveLength(1)
    await app.writeTopology('100')
    await dev.shows(/^Reloaded\.$/m)
    expect((await project.result('dead-letters', 'redrive', '--all')).code).toBe(0)
    expect(await app.applied()).toEqual({ [`${letter?.id}/0`]: { id: 'b', price: 100 } })

    const [, endpoint = ''] = /with Kinesis at (\S+)\. /.exec(dev.stdout) ?? []
    const client = localKinesisClient(endpoint)
    const reader = new KinesisShardReader({ client, streamName: 'orders', clock: systemClock })
    const { records } = await reader.read(await reader.open('shardId-000000000000', { at: 'trim-horizon' }), 100)
    client.destroy()
    expect(records).toHaveLength(1)
    dev.signal('SIGINT')
    expect([await dev.ends(), dev.stderr]).toEqual([0, ''])
  },
  timeoutMs,
)

test(
  'the dead letters of a run on an endpoint are listed by run and by stream, and redriven there',
  async () => {
    const service = await startKinesisService()
    try {
      await app.writeHandler()
      await app.writeTopology(unknownUnit)
      await project.write('orders.ndjson', line('b', 'barrel'))
      const dev = ['dev', topologyFile, '--input', 'orders.ndjson', '--once', '--endpoint', service.url]
      expect(await project.result(...dev)).toMatchObject({ code: 1, stderr: '' })
      const [letter] = await open()
      const place = ['--stream', 'orders-app-dead-letters', '--endpoint', service.url]
      const listed = await project.result('dead-letters', 'list', ...place)
      expect(listed.stdout).toMatch(/^1 dead letter of stream orders-app-dead-letters\n/)
      const shown = await project.result('dead-letters', 'show', String(letter?.handle), ...place)
      expect(shown.stdout).toContain('{"id":"b","unit":"barrel"}')
      await app.writeTopology('100')
      expect((await project.result('dead-letters', 'redrive', '--all')).stdout).toContain('1 done')
      expect(await open()).toEqual([])
      expect(await app.applied()).toEqual({ [`${letter?.id}/0`]: { id: 'b', price: 100 } })
    } finally {
      await service.close()
    }
  },
  timeoutMs,
)

test(
  'a record too large for the dead-letter stream is taken from its source',
  async () => {
    await giveUp(`${JSON.stringify({ id: 'x', unit: 'barrel', note: 'x'.repeat(900_000) })}\n`)
    const [letter] = await open()
    const shown = await project.result('dead-letters', 'show', String(letter?.handle))
    expect(shown.stdout).toMatch(/^1,200,\d+ bytes are only at the source: the entry has/m)
    await app.writeTopology('100')
    expect((await project.result('dead-letters', 'redrive', '--all')).stdout).toContain('1 done')
    expect(await app.applied()).toEqual({ [`${letter?.id}/0`]: { id: 'x', price: 100 } })
  },
  timeoutMs,
)

test(
  'what cannot be done is one line',
  async () => {
    const lines = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await project.result('dead-letters', ...args)
      return [code, stdout, stderr]
    }
    const help = '`millrace dead-letters redrive --help` lists what it takes.'
    expect(await lines('list')).toEqual([
      1,
      '',
      'millrace: There is no local run in .millrace: `millrace dev TOPOLOGY` makes one.\n',
    ])
    expect(await lines('redrive')).toEqual([2, '', `millrace: Say which: --all, --reason or --id. ${help}\n`])
    expect(await lines('redrive', '--all', '--stream', 'x')).toEqual([
      2,
      '',
      `millrace: --stream, --queue and --topic need --function NAME, which takes the records. ${help}\n`,
    ])
    expect(await lines('list', '--stream', 'x', '--endpoint', 'http://127.0.0.1:1')).toEqual([
      1,
      '',
      expect.stringMatching(/^millrace: The dead letters cannot be read: stream x: .*ECONNREFUSED.*\n$/),
    ])
    expect(await lines('list', '--queue', 'http://127.0.0.1:1/q', '--endpoint', 'http://127.0.0.1:1')).toEqual([
      1,
      '',
      expect.stringMatching(/^millrace: The queue http:\/\/127\.0\.0\.1:1\/q cannot be read: .*ECONNREFUSED.*\n$/),
    ])
  },
  timeoutMs,
)
