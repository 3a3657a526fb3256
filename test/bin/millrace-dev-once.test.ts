/** `millrace dev --once`: the end of the input is the end of event time, and what a directory of earlier runs says to the next one. */
import { type AddressInfo, createServer } from 'node:net'
import { MillraceProject } from './millrace-project.ts'

const timeoutMs = 240_000
let project: MillraceProject

/** Rides of drivers: a state, a timer that a driver's silence sets off, and a window behind it. */
interface Version {
  readonly windowMinutes?: number
  readonly process?: string
}

const topology = ({ windowMinutes = 15, process = 'totals' }: Version = {}) => `
import { count, eventTimer, hours, isoTime, minutes, Topology, tumbling, valueState } from 'millrace'
import * as z from 'zod'
const Ride = z.object({ driver: z.string(), cents: z.int(), endedAt: z.string() })
export const app = new Topology('rides-app')
const byDriver = app
  .source('rides', Ride, { eventTime: isoTime(({ endedAt }) => endedAt), outOfOrderness: minutes(1) })
  .map((ride) => {
    if (ride.cents < 0) throw new TypeError('no fare is ' + ride.cents)
    return ride
  })
  .keyBy('by-driver', ({ driver }) => driver)
byDriver
  .process('${process}', {
    state: { cents: valueState<number>({ ttl: { by: 'event-time', after: hours(24) } }) },
    timers: { silent: eventTimer() },
    step(ride, { state, timers }): string[] {
      state.cents.set((state.cents.get() ?? 0) + ride.cents)
      timers.silent.set(Date.parse(ride.endedAt) + minutes(60).ms)
      return []
    },
    onTimer: { silent: (_timeMs, { key, state }) => [key + ' earned ' + state.cents.get()] },
  })
  .to(app.sink<string>('shifts'))
const windows = byDriver
  .window(tumbling(minutes(${windowMinutes}), { grace: minutes(5) }))
  .aggregate('per-quarter', { rides: count() }, { emit: 'on-close' })
windows.results.map(({ key, value }) => key + ' drove ' + value.rides).to(app.sink<string>('quarters'))
windows.late.map(({ driver }) => driver).to(app.sink<string>('late'))
`
const handler = `
import { streamHandler } from 'millrace'
import { app } from './topology'
export const handler = streamHandler(app)
`
const file = 'functions/rides/topology.ts'
const ride = (driver: string, cents: number, time: string) =>
  `${JSON.stringify({ driver, cents, endedAt: `2026-11-29T${time}:00Z` })}\n`
const rides = ride('ann', 700, '12:01') + ride('ann', 300, '12:14')
const once = (...flags: readonly string[]) => project.result('dev', file, '--input', 'rides.ndjson', '--once', ...flags)

beforeEach(async () => {
  project = await MillraceProject.create()
  await project.write(file, topology())
  await project.write('functions/rides/handler.ts', handler)
  await project.write('rides.ndjson', rides)
})
afterEach(() => project.clear())

test(
  'at the end of the input every window closes and every timer fires; what a later run sends is late, and both say so',
  async () => {
    const first = await once()
    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(first.stdout).toContain('\nquarters: "ann drove 2"\n')
    expect(first.stdout).toContain('\nshifts: "ann earned 1000"\n')
    expect(first.stdout).toContain(
      'All input is processed: 2 lines sent in this run. In the streams: shifts 1, quarters 1, late 0, dead letters 0.\nThe input has ended, and event time with it: every window is closed. What a later run sends is late; --fresh starts over.\n',
    )
    expect((await project.result('status')).stdout).toMatch(/^by-driver .* {2}the end of all input {2}/m)
    await project.write('rides.ndjson', rides + ride('bob', 500, '12:31'))
    const second = await once()
    expect(second.stdout).toMatch(
      /^Event time has ended here: .* What is sent now is late for them.*; --fresh starts over\.$/m,
    )
    expect(second.stdout).toContain('\nlate: "bob"\n')
    // A reset has the source read again, and its time begins anew.
    expect((await project.result('reset', '--from', '2026-01-01T00:00:00Z', '--yes')).code).toBe(0)
    const again = await once()
    expect(again.stdout).not.toContain('Event time has ended here')
    expect(again.stdout).toContain('In the streams: shifts 4, quarters 3, late 1, dead letters 0.')
    const fresh = await once('--fresh')
    expect(fresh.stdout).not.toContain('Event time has ended here')
    expect(fresh.stdout).toContain('In the streams: shifts 2, quarters 2, late 0, dead letters 0.')
  },
  timeoutMs,
)

test(
  'a topology that would misread what earlier runs keep is refused with the words of the lock, until --fresh',
  async () => {
    await once()
    await project.write(file, topology({ windowMinutes: 10, process: 'sums' }))
    const refused = await once()
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    const [head, ...lines] = refused.stderr.trimEnd().split('\n')
    const startOver = lines.pop()
    expect(head).toBe(
      'millrace: topology "rides-app" would lose or misread what earlier runs keep in .millrace/rides-app:',
    )
    expect(lines.toSorted()).toEqual([
      expect.stringMatching(/^- process "totals" of stage "by-driver" is gone: .* renamed to "sums"/),
      expect.stringMatching(
        /^- window "per-quarter" of stage "by-driver" has the windows tumbling\(600000 ms\) instead/,
      ),
    ])
    expect(startOver).toBe('On this machine --fresh starts over without it.')
    expect((await once('--fresh')).stdout).toContain('In the streams: shifts 1, quarters 2, late 0, dead letters 0.')
  },
  timeoutMs,
)

test(
  '--fresh on a port that is taken leaves the state as it is',
  async () => {
    await once()
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((go) => server.once('listening', go))
    const { port } = server.address() as AddressInfo
    const refused = await once('--fresh', '--port', String(port))
    await new Promise((go) => server.close(go))
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot listen on port') })
    expect((await once()).stdout).toContain('In the streams: shifts 1, quarters 1, late 0, dead letters 0.')
  },
  timeoutMs,
)

test(
  'where every line became a dead letter the exit code is 1; the class of the error is shown, and where the rest is',
  async () => {
    await project.write('rides.ndjson', ride('ann', -1, '12:01') + ride('bob', -2, '12:02'))
    const { code, stdout } = await once()
    expect(code).toBe(1)
    expect(stdout).toMatch(/^dead letters: [0-9a-f]{8} {2}step-failed \(step\): TypeError {2}rides shardId/m)
    const [, handle] =
      /^Every line became a dead letter\. `millrace dead-letters show (\S+) --app rides-app` says why/m.exec(stdout) ??
      []
    const shown = await project.result('dead-letters', 'show', String(handle), '--app', 'rides-app')
    expect(shown.stdout).toMatch(/^error {8}TypeError: no fare is -2$/m)
  },
  timeoutMs,
)

test(
  'a folder, an unknown source, an endpoint without http and one where nothing listens are one line that says what to do',
  async () => {
    const line = async (...typed: readonly string[]) => {
      const { code, stdout, stderr } = await project.result(...typed)
      return [code, stdout, stderr]
    }
    expect(await line('plan', 'functions/rides')).toEqual([
      1,
      '',
      'millrace: functions/rides is a folder: say functions/rides/topology.ts.\n',
    ])
    const [code, , stderr] = await line('dev', file, '--input', 'ride=rides.ndjson', '--once')
    expect([code, stderr]).toEqual([
      2,
      'millrace: --input ride=rides.ndjson: the topology has no source "ride", it has rides; and there is no file ride=rides.ndjson. `millrace dev --help` lists what it takes.\n',
    ])
    expect((await line('dev', file, '--endpoint', 'localhost:4566'))[2]).toMatch(
      /^millrace: --endpoint localhost:4566 is no URL with http:\/\/ or https:\/\/: write --endpoint http:\/\/localhost:4566\./,
    )
    // A port that a program has just given back.
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((go) => server.once('listening', go))
    const { port } = server.address() as AddressInfo
    await new Promise((go) => server.close(go))
    const closed = await line('dev', file, '--endpoint', `http://127.0.0.1:${port}`)
    expect(closed[0]).toBe(1)
    expect(closed[2]).toMatch(
      /ECONNREFUSED.* Nothing listens there: start it, or check host and port of the endpoint\.\n$/,
    )
  },
  timeoutMs,
)
