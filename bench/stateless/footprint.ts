/** What the application weighs: the size of its bundle, the time of a cold start, the heap of a warm one. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { bundleHandler } from '../../lib/local/run/handler-bundle.ts'
import { ensureStream, localIdentity, localKinesisClient } from '../../lib/local/run/streams.ts'
import { startKinesisService } from '../../lib/local/services/kinesis.ts'
import { bindingsVariable, type DeadLetterBinding, type StageBindings } from '../../lib/plan/stage-bindings.ts'
import { type Figure, median, table } from '../figures.ts'

const run = promisify(execFile)
const here = fileURLToPath(new URL('.', import.meta.url))

/** Kinesis in, Kinesis out. */
const bindingsWith = (deadLetters: DeadLetterBinding): StageBindings => ({
  formatVersion: 1,
  topology: 'bench',
  sources: [{ name: 'payments', kind: 'kinesis', streamArn: 'arn:aws:kinesis:us-east-1:000000000000:stream/payments' }],
  sinks: [{ name: 'converted', kind: 'kinesis', streamName: 'converted', ordering: 'per-key' }],
  deadLetters,
})

/** The applications that are weighed: what StreamApplication makes unless told otherwise, and the smallest one. */
const applications: Readonly<Record<string, StageBindings>> = {
  // Nobody listens there: the batches of the benchmark make no dead letter.
  'default (dead letters on SQS, large ones in S3)': bindingsWith({
    kind: 'sqs',
    queueUrl: 'http://127.0.0.1:1/queue',
    offloadBucket: 'payloads',
  }),
  'dead letters on Kinesis': bindingsWith({ kind: 'kinesis', streamName: 'failed' }),
}

const coldStarts = 9
const bundleGoalKb = 600
const coldStartGoalMs = 250

interface Measured {
  readonly coldStartMs: number
  readonly peakHeapMb: number
}

/** Runs the bundle in a fresh process, against an embedded Kinesis. */
async function measure(bundle: string, bindings: StageBindings, endpoint: string): Promise<Measured> {
  const environment = {
    PATH: process.env.PATH ?? '',
    AWS_ENDPOINT_URL_KINESIS: endpoint,
    AWS_REGION: localIdentity.region,
    AWS_ACCESS_KEY_ID: localIdentity.accessKeyId,
    AWS_SECRET_ACCESS_KEY: localIdentity.secretAccessKey,
    [bindingsVariable]: JSON.stringify(bindings),
  }
  const { stdout } = await run(process.execPath, ['--expose-gc', join(here, 'one-environment.ts'), bundle], {
    env: environment,
  })
  return JSON.parse(stdout.trim().split('\n').at(-1) as string)
}

interface Weighed {
  readonly name: string
  readonly bindings: StageBindings
  readonly bundle: string
  readonly bundleBytes: number
  readonly bytesWithoutZod: number
  readonly runs: Measured[]
}

async function bundled(name: string, bindings: StageBindings, directory: string): Promise<Weighed> {
  const entry = join(here, 'handler.ts')
  const bundle = await bundleHandler({ entry, directory, bindings })
  const own = await bundleHandler({ entry, directory: join(directory, 'own'), bindings, external: ['zod'] })
  return { name, bindings, bundle, bundleBytes: statSync(bundle).size, bytesWithoutZod: statSync(own).size, runs: [] }
}

function figuresOf({ name, bundleBytes, bytesWithoutZod, runs }: Weighed): readonly Figure[] {
  return [
    {
      name: `${name}: bundle without the schema library`,
      value: Math.round(bytesWithoutZod / 1_000),
      unit: 'kB',
      goal: bundleGoalKb,
      better: 'lower',
    },
    { name: `${name}: bundle with zod`, value: Math.round(bundleBytes / 1_000), unit: 'kB' },
    {
      name: `${name}: cold start (import and a first batch of 100)`,
      value: Math.round(median(runs.map(({ coldStartMs }) => coldStartMs))),
      unit: 'ms',
      goal: coldStartGoalMs,
      better: 'lower',
    },
    {
      name: `${name}: peak heap over 50 batches of 1,000 x 2,000 B`,
      value: Math.round(median(runs.map(({ peakHeapMb }) => peakHeapMb))),
      unit: 'MB',
    },
  ]
}

export async function footprint(): Promise<Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const service = await startKinesisService()
  try {
    const client = localKinesisClient(service.url)
    for (const stream of ['converted', 'failed']) await ensureStream(client, systemClock, stream, 1)
    const weighed: Weighed[] = []
    for (const [name, bindings] of Object.entries(applications)) {
      weighed.push(await bundled(name, bindings, join(directory, String(weighed.length))))
    }
    // In turn, so that what else the machine does meets all of them alike.
    for (let i = 0; i < coldStarts; i++) {
      for (const { bundle, bindings, runs } of weighed) runs.push(await measure(bundle, bindings, service.url))
    }
    const figures = weighed.flatMap(figuresOf)
    console.log(`\nFootprint (medians of ${coldStarts} fresh processes)\n`)
    console.log(
      table(
        figures.map(({ name, value, unit, goal }) => [
          name,
          `${value} ${unit}`,
          goal === undefined ? '' : `goal: under ${goal} ${unit}`,
        ]),
      ),
    )
    return figures
  } finally {
    await service.close()
    rmSync(directory, { recursive: true })
  }
}
