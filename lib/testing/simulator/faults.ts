/**
 * The faults of one run, drawn from its seed: which kinds there are at all, and how often.
 *
 * Every kind is off in some runs, so that what one of them hides another run shows.
 */
import type { Random } from './random.ts'

export interface Faults {
  /** False in runs that are to show what things cost when nothing goes wrong. */
  readonly any: boolean
  /** At each point of a port call: the environment dies there. */
  readonly crash: number
  /** Per step of the scheduler: an invocation that its mapping gives up waiting for, though it goes on. */
  readonly zombie: number
  /** Of zombies, how many fall asleep and wake much later. */
  readonly sleeps: number
  /** Per step: a shard gets a second poller, at its checkpoint or at an older one. */
  readonly failOver: number
  /** Per step: a batch from anywhere before the checkpoint is handed out once more, and nobody hears the answer. */
  readonly redelivery: number
  /** Per conditional write: it takes place and its answer is lost. */
  readonly lostAnswer: number
  /** Per frame or output: refused, though the request is answered. */
  readonly refusedItem: number
  /** Per frame or output: taken, though the answer says refused. */
  readonly lostAcknowledgement: number
  /** Per frame: it may land behind its successor. */
  readonly overtaking: number
  /** Per step: the tables or a stream refuse everything for a while. */
  readonly throttle: number
  /** Per read of several items: they are read at two moments. */
  readonly tornRead: number
  /** Per step: a shard of the source, or of an internal stream, is split or two are merged. */
  readonly reshard: number
  /** Per step: time jumps by up to ten minutes. */
  readonly clockJump: number
  /** Per step: an environment's clock is set to something else. */
  readonly clockSkew: number
  /** Per invocation: a new environment although one is idle. */
  readonly coldStart: number
  /** Per step: from now on new environments run the topology's other version. */
  readonly redeploy: number
  /** Per step: bytes that are no frame come into an internal stream. */
  readonly brokenFrame: number
  /** Reading a shard takes up to so long. */
  readonly slowReadMs: number
  /** Per step: nobody reads some shard for a while. */
  readonly block: number
  /** Per step: partitions begin that nobody names for a while, as the announcer has no round. */
  readonly unheardOf: number
  /** Per step: a round of the announcer begins; in some runs so often, in others hardly ever. */
  readonly round: number
  /** Of rounds, how many begin twice. */
  readonly roundTwice: number
  /** Of rounds, how many go by a clock that is up to two minutes off. */
  readonly roundOff: number
  /** Per step: a dead letter of a keyed stage is mended and sent again, now and then twice. */
  readonly redrive: number
  /** Per step: time jumps by so much that TTL may take what is empty. */
  readonly silence: number
  /** Of items that are empty for long enough, how many are gone whenever one is looked at. */
  readonly ttl: number
  /** Per request to a stream: it takes what it takes, and nobody hears the answer. */
  readonly lostRequest: number
  /** Per batched write of due entries: it takes place and its answer is lost. */
  readonly lostDueAnswer: number
  /** Per batched call or query of DynamoDB: it answers for a part, as it may. */
  readonly answeredInPart: number
  /** What the other version of the topology has more than the first: a redeploy adds it, the next one takes it away. */
  readonly changes: PlanChanges
  /** Whether the first version of the topology runs on the release of Millrace before this one. */
  readonly mixesReleases: boolean
}

/** Changes of the plan that are compatible: nothing that was there before has another name, or another place. */
export interface PlanChanges {
  /** A keyed operator behind what is there, with a state and a sink of its own. */
  readonly operator: boolean
  /** A sink of the stage that reads the source. */
  readonly sink: boolean
  /** The last keyed stage, where a run has two. */
  readonly stage: boolean
}

const noChanges: PlanChanges = { operator: false, sink: false, stage: false }

export const noFaults: Faults = {
  any: false,
  crash: 0,
  zombie: 0,
  sleeps: 0,
  failOver: 0,
  redelivery: 0,
  lostAnswer: 0,
  refusedItem: 0,
  lostAcknowledgement: 0,
  overtaking: 0,
  throttle: 0,
  tornRead: 0,
  reshard: 0,
  clockJump: 0,
  clockSkew: 0,
  coldStart: 0.1,
  redeploy: 0,
  brokenFrame: 0,
  slowReadMs: 0,
  block: 0,
  unheardOf: 0,
  round: 0,
  roundTwice: 0,
  roundOff: 0,
  redrive: 0,
  silence: 0,
  ttl: 0,
  lostRequest: 0,
  lostDueAnswer: 0,
  answeredInPart: 0,
  changes: noChanges,
  mixesReleases: false,
}

/** One run in twelve has none; of the others each kind is there or not. */
export function drawFaults(random: Random): Faults {
  if (random.chance(1 / 12)) return noFaults
  const sometimes = (most: number, share = 0.7): number => (random.chance(share) ? most * random.next() : 0)
  return {
    ...noFaults,
    any: true,
    crash: sometimes(0.02),
    zombie: sometimes(0.01),
    sleeps: sometimes(0.8),
    failOver: sometimes(0.006),
    redelivery: sometimes(0.01),
    lostAnswer: sometimes(0.15),
    refusedItem: sometimes(0.3),
    lostAcknowledgement: sometimes(0.15),
    overtaking: sometimes(0.5, 0.5),
    throttle: sometimes(0.002, 0.5),
    tornRead: sometimes(0.5),
    reshard: sometimes(0.006),
    clockJump: sometimes(0.002, 0.4),
    clockSkew: sometimes(0.004, 0.4),
    coldStart: random.chance(0.3) ? 1 : sometimes(0.4),
    redeploy: sometimes(0.001, 0.4),
    brokenFrame: sometimes(0.001, 0.3),
    slowReadMs: sometimes(20_000, 0.4),
  }
}

/** What half of the runs with faults have beside. */
export function drawMoreFaults(random: Random, drawn: Faults): Faults {
  if (!drawn.any || random.chance(0.5)) return drawn
  const sometimes = (most: number, share = 0.5): number => (random.chance(share) ? most * random.next() : 0)
  // TTL takes something only where there are silences.
  const fades = random.chance(0.5)
  return {
    ...drawn,
    lostRequest: sometimes(0.1),
    lostDueAnswer: sometimes(0.2),
    answeredInPart: sometimes(0.5),
    redeploy: Math.max(drawn.redeploy, sometimes(0.004)),
    changes: { operator: random.chance(0.6), sink: random.chance(0.5), stage: random.chance(0.5) },
    silence: fades ? 0.001 + 0.004 * random.next() : drawn.silence,
    ttl: fades ? 0.3 + 0.7 * random.next() : drawn.ttl,
    mixesReleases: random.chance(0.3),
  }
}

/** In one run with time in six no attempt is broken off and no two run at once. */
const calm = {
  crash: 0,
  zombie: 0,
  failOver: 0,
  redelivery: 0,
  lostAnswer: 0,
  lostDueAnswer: 0,
  throttle: 0,
  clockJump: 0,
}

/** What runs with time have beside. The announcer's rounds are no fault: there are some in every run. */
export function drawTimedFaults(random: Random, drawn: Faults): Faults {
  // The number is the first with which no kept seed draws any: what was drawn before is as it was.
  const unheard = random.fork('unheard-of partitions 3954')
  const round = random.pick([0.004, 0.01, 0.02])
  if (!drawn.any) return { ...drawn, round }
  const sometimes = (most: number, share: number): number => (random.chance(share) ? most * random.next() : 0)
  const isCalm = random.chance(1 / 6)
  return {
    ...drawn,
    round,
    unheardOf: unheard.chance(0.4) ? 0.004 * unheard.next() : 0,
    block: sometimes(0.003, 0.5),
    roundTwice: sometimes(0.5, 0.5),
    roundOff: sometimes(0.5, 0.5),
    redrive: sometimes(0.01, 0.4),
    ttl: Math.max(drawn.ttl, sometimes(1, 0.5)),
    silence: isCalm ? 0 : Math.max(drawn.silence, sometimes(0.002, 0.3)),
    ...(isCalm ? calm : {}),
  }
}
