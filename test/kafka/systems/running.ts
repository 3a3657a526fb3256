/** The three systems on one broker, while something is done to them. */
import { BrokerApplication } from './broker-application.ts'
import type { Mode } from './broker-stage.ts'
import { type BookingSystem, bookings, drivers, payments, type System } from './systems.ts'
import { until } from './until.ts'

export const modes: readonly Mode[] = ['on-demand', 'provisioned']

/** A system that runs. */
export interface Running {
  readonly system: System | BookingSystem
  readonly application: BrokerApplication
}

const batchSize = 20
const seeds: Readonly<Record<Mode, number>> = { 'on-demand': 1, provisioned: 2 }

/**
 * Starts the systems in these modes, lets `work` send what is to be sent and do something to them, ends the input, and compares what
 * came of it with a plain loop over what was sent. `partitions` are those of the sources for the second part.
 */
export async function withSystems(
  ofModes: readonly Mode[],
  work: (running: readonly Running[]) => Promise<void>,
  partitions?: number,
): Promise<void> {
  const wanted = ofModes.flatMap((mode) =>
    [payments, drivers, bookings].map((make) => ({ mode, system: make(seeds[mode], partitions) })),
  )
  const opened = await Promise.allSettled(
    wanted.map(async ({ mode, system }): Promise<Running> => {
      const { topology, entry } = system
      return { system, application: await BrokerApplication.open({ topology, entry, mode, batchSize }) }
    }),
  )
  const running = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  try {
    for (const one of opened) if (one.status === 'rejected') throw one.reason
    await Promise.all(running.map(({ application }) => application.start()))
    await work(running)
    await Promise.all(running.map(({ application }) => application.end()))
    for (const { system, application } of running) await system.check(application)
  } finally {
    await Promise.all(running.map(({ application }) => application.stop()))
  }
}

/** Sends a part of what each system is sent. */
export async function produce(running: readonly Running[], part: 0 | 1): Promise<void> {
  await Promise.all(running.map(({ system, application }) => application.produce(system.source, system.parts[part])))
}

/** Waits until each group of a source has committed more than so many records. */
export async function untilCommitted(
  running: readonly Running[],
  beyond: (system: System) => number = () => 0,
): Promise<void> {
  const isUnderWay = async ({ system, application }: Running) =>
    (await application.count(system.source)).committed > beyond(system)
  await Promise.all(
    running.map((one) =>
      until(
        () => isUnderWay(one),
        () => one.application.status(),
      ),
    ),
  )
}

/** How many records of their sources the systems have still to commit. */
export async function unfinished(running: readonly Running[]): Promise<number> {
  const counts = await Promise.all(running.map(({ system, application }) => application.count(system.source)))
  return counts.reduce((sum, { records, committed }) => sum + records - committed, 0)
}
