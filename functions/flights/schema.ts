/** What the flights topology reads and writes. */
import * as z from 'zod'

/** A flight as its airline reports it, once it has left. */
export const FlightReport = z.object({
  /** Names the flight for ever; the same report may come more than once. */
  flight: z.string().min(1),
  /** Local wall time at the origin, without a zone: `2001-01-01T00:01:00`. */
  scheduled: z.string(),
  /** Negative for a flight that left early. */
  delayMinutes: z.int(),
  distanceMiles: z.int().nonnegative(),
  /** IATA code of an airport. */
  origin: z.string().min(1),
  destination: z.string().min(1),
})
export type FlightReport = z.infer<typeof FlightReport>

/** An airport as the enrichment knows it; `NA` where its city or state is not known. */
export interface Airport {
  readonly code: string
  readonly name: string
  readonly city: string
  readonly state: string
}

/** A valid flight between two known airports. */
export interface CleanFlight {
  readonly flight: string
  /** The scheduled wall time, read as UTC. */
  readonly eventTime: string
  readonly delayMinutes: number
  readonly distanceMiles: number
  readonly origin: Airport
  readonly destination: Airport
}

export type RejectionReason = 'delay-too-low' | 'delay-too-high' | 'unknown-origin' | 'unknown-destination'

/** A well-formed report that cannot be right. */
export interface RejectedFlight {
  readonly flight: string
  readonly reason: RejectionReason
  /** The reason in words, with the value. */
  readonly message: string
  readonly report: FlightReport
}

/** What counts of a clean flight for its origin. A type, not an interface: a state holds plain data. */
export type Departure = {
  readonly flight: string
  /** The scheduled wall time, read as UTC. */
  readonly scheduled: string
  readonly delayMinutes: number
  /** IATA codes. */
  readonly origin: string
  readonly destination: string
}

/** The delays of one airport in one hour, as far as its flights are known. A later revision replaces an earlier one. */
export interface HourlyDelays {
  readonly airport: string
  /** When the hour begins: scheduled wall time, read as UTC. */
  readonly hour: string
  /** From 0. */
  readonly revision: number
  readonly flights: number
  readonly meanMinutes: number
  readonly maxMinutes: number
  /** Nine tenths of the flights were delayed by no more: a whole minute, exact up to 250. */
  readonly p90Minutes: number
}
