import type { KinesisEffect, PlacedRecord } from './effects.ts'
import { KinesisError } from './errors.ts'
import type { StreamReference } from './shapes.ts'
import { isExpired, type Shard, type Stream } from './stream.ts'

/** What the operations share: the streams, the time, and the one way to change anything. */
export interface World {
  readonly accountId: string
  readonly region: string
  readonly enforceLimits: boolean
  readonly streams: ReadonlyMap<string, Stream>
  nowMs(): number
  /** Applies an effect and reports it to the model's owner. */
  commit(effect: KinesisEffect): readonly PlacedRecord[]
}

/** Tokens and iterators are good for five minutes. */
export const TOKEN_LIFE_MS = 300_000

export function streamArn(world: World, streamName: string): string {
  return `arn:aws:kinesis:${world.region}:${world.accountId}:stream/${streamName}`
}

/** Finds the stream that a request names, or refuses as AWS does. */
export function findStream(world: World, reference: StreamReference): Stream {
  const name = streamNameOf(world, reference)
  const stream = world.streams.get(name)
  if (stream === undefined) {
    throw new KinesisError('ResourceNotFoundException', `Stream ${name} under account ${world.accountId} not found.`)
  }
  return stream
}

function streamNameOf(world: World, { StreamName, StreamARN }: StreamReference): string {
  if (StreamARN === undefined) {
    if (StreamName !== undefined) return StreamName
    throw new KinesisError('InvalidArgumentException', 'Name the stream: StreamName or StreamARN is required.')
  }
  const prefix = streamArn(world, '')
  if (!StreamARN.startsWith(prefix)) {
    throw new KinesisError(
      'ResourceNotFoundException',
      `No stream here has the ARN ${StreamARN}: the streams of this model begin with ${prefix}.`,
    )
  }
  const name = StreamARN.slice(prefix.length)
  if (StreamName !== undefined && StreamName !== name) {
    throw new KinesisError('InvalidArgumentException', `StreamARN ${StreamARN} does not name the stream ${StreamName}.`)
  }
  return name
}

/** Finds a shard that retention has not taken yet. */
export function findShard(world: World, stream: Stream, id: string): Shard {
  const shard = stream.shards[Number(/^shardId-(\d{12})$/.exec(id)?.[1] ?? -1)]
  if (shard === undefined || isExpired(stream, shard, world.nowMs())) {
    throw new KinesisError(
      'ResourceNotFoundException',
      `Shard ${id} in stream ${stream.name} under account ${world.accountId} does not exist`,
    )
  }
  return shard
}

/** Finds a shard that still takes records. */
export function findOpenShard(world: World, stream: Stream, id: string): Shard {
  const shard = findShard(world, stream, id)
  if (shard.closedAtMs !== undefined) {
    throw new KinesisError(
      'InvalidArgumentException',
      `Shard ${id} in stream ${stream.name} under account ${world.accountId} is closed: it cannot be split or merged.`,
    )
  }
  return shard
}

/** Refuses a number outside [least, most] in the words of AWS's request validation. */
export function checkRange(field: string, value: number | undefined, least: number, most: number): void {
  if (value === undefined) return
  const violation =
    value < least ? `greater than or equal to ${least}` : value > most ? `less than or equal to ${most}` : undefined
  if (violation !== undefined) {
    throw validationError(field, value, `Member must have value ${violation}`)
  }
}

/** Refuses a text or list whose length is outside [least, most]. */
export function checkLength(field: string, length: number, least: number, most: number): void {
  const violation =
    length < least ? `greater than or equal to ${least}` : length > most ? `less than or equal to ${most}` : undefined
  if (violation !== undefined) {
    throw validationError(field, `of length ${length}`, `Member must have length ${violation}`)
  }
}

/** Refuses a text that is not an integer in decimal, without sign or leading zeros, of at most so many digits. */
export function checkDecimal(field: string, text: string | undefined, mostDigits: number): void {
  if (text === undefined || (/^(0|[1-9]\d*)$/.test(text) && text.length <= mostDigits)) return
  const pattern = `0|([1-9]\\d{0,${mostDigits - 1}})`
  throw validationError(field, text.slice(0, 150), `Member must satisfy regular expression pattern: ${pattern}`)
}

export function validationError(field: string, value: string | number, constraint: string): KinesisError {
  return new KinesisError(
    'ValidationException',
    `1 validation error detected: Value '${value}' at '${field}' failed to satisfy constraint: ${constraint}`,
  )
}
