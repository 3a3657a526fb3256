import { type Format, json, listState, mapState, Topology, valueState } from '../../../lib/index.ts'
import { TestDriver } from '../../../lib/testing/index.ts'

interface Ride {
  readonly driver: string
  readonly fare: number
}

function rides() {
  const app = new Topology('rides-app')
  const source = app.source('rides', json() as Format<Ride>)
  const totals = app.sink<{ driver: string; total: number }>('totals', { key: (t) => t.driver })
  source
    .filter((ride) => ride.fare > 0)
    .keyBy('by-driver', (ride) => ride.driver)
    .process('earnings', {
      state: { total: valueState<number>(), fares: listState<number>({ atMost: 3 }), byFare: mapState<number>() },
      step: (ride, { key, state }) => {
        const total = (state.total.get() ?? 0) + ride.fare
        state.total.set(total)
        state.fares.add(ride.fare)
        state.byFare.set(String(ride.fare), (state.byFare.get(String(ride.fare)) ?? 0) + 1)
        return [{ driver: key, total }]
      },
    })
    .to(totals)
  return { app, source, totals }
}

test('state is kept by key, and outputs follow it', async () => {
  const { app, source, totals } = rides()
  const driver = new TestDriver(app)
  await driver.send(source, [
    { driver: 'a', fare: 1 },
    { driver: 'b', fare: 5 },
    { driver: 'a', fare: 2 },
  ])
  await driver.send(source, [{ driver: 'a', fare: 4 }])
  const of = (name: string) =>
    driver
      .received(totals)
      .filter((t) => t.driver === name)
      .map((t) => t.total)
  expect(of('a')).toEqual([1, 3, 7])
  expect(of('b')).toEqual([5])
  expect(driver.deadLetters).toEqual([])
})
