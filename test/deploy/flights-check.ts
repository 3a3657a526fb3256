/** Flights that are sent to the deployed application, and what must have come out of it: of each report, and of each airport. */
import type { StandInClients } from '../../bin/deploy/clients.ts'
import { streamNameOf } from '../../bin/deploy/deployed-stack.ts'
import { compareAirports } from '../../bin/flights/airport-report.ts'
import { readAirportStates } from '../../bin/flights/airport-states.ts'
import { batchAirports } from '../../bin/flights/batch-airports.ts'
import { batchScan } from '../../bin/flights/batch-scan.ts'
import type { InputRecord } from '../../bin/flights/input.ts'
import { OutputReader } from '../../bin/flights/read-outputs.ts'
import { compare } from '../../bin/flights/report.ts'
import { deadLetterOutput } from '../../lib/local/run/application.ts'
import type { StageBindings } from '../../lib/plan/stage-bindings.ts'
import { deadLettersOf } from './deployed-queue.ts'
import { DeployedStream, type ToSend } from './deployed-streams.ts'
import { airports, drawnFlights } from './drawn-flights.ts'
import type { DrivenApplication } from './driven-application.ts'

export class FlightsCheck {
  readonly #clients: StandInClients
  readonly #application: DrivenApplication
  readonly #reports: DeployedStream
  /** What was sent, in the order in which it was. */
  readonly #input: InputRecord[] = []

  private constructor(clients: StandInClients, application: DrivenApplication, reports: DeployedStream) {
    this.#clients = clients
    this.#application = application
    this.#reports = reports
  }

  static async open(clients: StandInClients, application: DrivenApplication): Promise<FlightsCheck> {
    const { source } = application.stage('flights')
    return new FlightsCheck(clients, application, await DeployedStream.open(clients, streamNameOf(source)))
  }

  /** A report in each shard that is rejected, and so counts in no hour; its time closes the hours of what came before. */
  get closing(): readonly (InputRecord & ToSend)[] {
    return Array.from({ length: this.#reports.shards }, (_, shard) => {
      const report = { flight: `closing-${shard}`, scheduled: '2001-01-09T00:00:00', delayMinutes: -999 }
      const data = Buffer.from(JSON.stringify({ ...report, distanceMiles: 1, origin: 'ORD', destination: 'ATL' }))
      return { data, partitionKey: 'closing', shard, knownMs: 0 }
    })
  }

  async put(records: readonly (InputRecord & ToSend)[]): Promise<void> {
    await this.#reports.put(records)
    this.#input.push(...records)
  }

  async expectEqualToBatch(): Promise<void> {
    const { outcomes, hours } = await this.#outputs()
    const states = await readAirportStates(this.#clients.dynamodb, this.#bindings('by-origin').state?.tableName)
    const ofReports = compare(outcomes, batchScan(this.#input, drawnFlights, airports))
    const ofAirports = compareAirports(hours, states, batchAirports(await this.#reports.log(), airports))
    for (const { rows, differences } of [ofReports, ofAirports]) {
      expect(differences).toEqual([])
      expect(rows.every(({ found }) => found > 0)).toBe(true)
    }
  }

  async #outputs(): Promise<OutputReader> {
    const reader = new OutputReader()
    for (const stage of ['flights', 'by-origin']) {
      const bindings = this.#bindings(stage)
      for (const { name } of bindings.sinks) {
        const stream = await DeployedStream.ofSink(this.#clients, bindings, name)
        for (const shard of await stream.log()) {
          reader.take(
            name,
            shard.map((data) => ({ data })),
          )
        }
      }
    }
    reader.take(deadLetterOutput, await deadLettersOf(this.#clients, this.#bindings('flights')))
    return reader
  }

  #bindings(stage: string): StageBindings {
    return this.#application.stage(stage).bindings
  }
}
