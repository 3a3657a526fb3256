import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { App, Stack } from 'aws-cdk-lib'
import { bundlingFor, checkHandlerExport, locateCode, locateTopicFunction } from '../../lib/cdk/bundle.ts'
import type { StageBindings } from '../../lib/plan/stage-bindings.ts'
import { kinesisEvent, sequenceNumber } from '../../lib/testing/index.ts'
import { invokeBundle } from './bundled-handler.ts'
import { entry, shopIn } from './world.ts'

/** Bindings of the shop with dead letters in S3, unless `change` says otherwise. */
const bindingsWith = (change: Partial<StageBindings>): StageBindings => ({
  formatVersion: 1,
  topology: 'shop',
  sources: [],
  sinks: [],
  deadLetters: { kind: 's3', bucket: 'b' },
  ...change,
})

describe('the bundle of a Kinesis application', () => {
  const outdir = mkdtempSync(join(tmpdir(), 'millrace-bundle-'))
  let file: string
  let code: string

  beforeAll(() => {
    // GIVEN an application that is bound to Kinesis, with the default dead letters
    const app = new App({ outdir })
    shopIn(new Stack(app, 'Bundled'))
    // WHEN
    const { directory } = app.synth()
    // THEN both stages have one asset: they differ in what they are told only
    const assets = readdirSync(directory).filter((name) => name.startsWith('asset.'))
    expect(assets).toHaveLength(1)
    file = join(directory, assets[0] ?? '', 'index.mjs')
    code = readFileSync(file, 'utf8')
  }, 60_000)

  afterAll(() => rmSync(outdir, { recursive: true }))

  // Counted, because a failing match would print the whole bundle.
  const occurrences = (text: string | RegExp) => code.split(text).length - 1

  it('holds the adapters that are bound, and none that is not', () => {
    expect(occurrences('PutRecords')).toBeGreaterThan(0)
    expect(occurrences('SendMessageBatch')).toBeGreaterThan(0)
    expect(occurrences('UpdateItem')).toBe(0)
    expect(occurrences('DynamoDB_20120810')).toBe(0)
    // Nor the runners of stages that keep progress.
    expect(occurrences('parent-not-drained')).toBe(0)
  })

  it('brings its own AWS SDK and nothing of the CDK', () => {
    expect(occurrences(/from ?"[^"]*(?:aws-sdk|smithy)/)).toBe(0)
    expect(occurrences('aws-cdk-lib')).toBe(0)
  })

  it('runs by itself: the bound adapters open, and what a sink does not take goes back to its source', async () => {
    // GIVEN bindings as deployed, and an endpoint where nobody listens
    const bindings = bindingsWith({
      sources: [{ name: 'orders', kind: 'kinesis', streamArn: 'arn:aws:kinesis:us-east-1:000000000000:stream/orders' }],
      sinks: ['ledger', 'audit-trail'].map((name) => ({
        name,
        kind: 'kinesis',
        streamName: name,
        ordering: 'per-key',
      })),
      deadLetters: { kind: 'sqs', queueUrl: 'http://127.0.0.1:1/queue', offloadBucket: 'payloads' },
    })
    const event = kinesisEvent(['an order'], { source: { name: 'orders' } })
    // WHEN
    const environment = { MILLRACE_BINDINGS: JSON.stringify(bindings), AWS_ENDPOINT_URL: 'http://127.0.0.1:1' }
    const answer = await invokeBundle(file, event, environment, 1_500)
    // THEN
    expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: sequenceNumber(0) }] })
  })

  it('is below 600 kB, minified', () => {
    expect(Buffer.byteLength(code)).toBeLessThan(600_000)
  })
})

const otherEvents = ['EVENTS_DYNAMODB_STREAM', 'EVENTS_SQS']
const kafka = ['EVENTS_KAFKA', 'KAFKA_SINK', 'DEAD_LETTERS_KAFKA', 'FRAMES_KAFKA', 'LINEAGE_KAFKA', 'ANNOUNCER_KAFKA']
const otherSinks = ['SQS_SINK', 'EVENTBRIDGE_SINK', 'FIREHOSE_SINK']
const sinksAndLetters = ['KINESIS_SINK', 'DYNAMODB_SINK', ...otherSinks, 'DEAD_LETTERS_KINESIS', 'DEAD_LETTERS_SQS']

describe('what a bundler leaves out', () => {
  const allLeftOut = (change: Partial<StageBindings>) =>
    Object.keys(bundlingFor(bindingsWith(change), entry).define ?? {}).map((name) =>
      name.replace('process.env.MILLRACE_ADAPTER_', ''),
    )
  const leftOut = (change: Partial<StageBindings>) =>
    allLeftOut(change).filter((name) => !kafka.includes(name) && !otherEvents.includes(name))

  const keyed = ['STATE_DYNAMODB', 'FRAMES_KINESIS', 'LINEAGE_KINESIS', 'ANNOUNCER_KINESIS']
  const state = { tableName: 'by-hotel' }
  const feeds = [{ stage: 'by-hotel', slots: 64, streamName: 'by-hotel' }]
  const stream = {
    name: 'by-city',
    kind: 'kinesis',
    streamArn: 'arn:aws:kinesis:eu-central-1:1:stream/by-city',
  } as const
  const topic = { name: 'orders', kind: 'kafka', topic: 'orders' } as const
  const cluster = { brokers: ['b-1:9092'], auth: { kind: 'none' }, tls: false } as const

  it.each<[string, Partial<StageBindings>, string[]]>([
    ['no sink, dead letters in S3', {}, [...sinksAndLetters, ...keyed]],
    ['a keyed stage', { state, sources: [stream] }, [...sinksAndLetters, 'FRAMES_KINESIS', 'ANNOUNCER_KINESIS']],
    [
      'a keyed stage that feeds another',
      { state, feeds, sources: [stream] },
      [...sinksAndLetters, 'ANNOUNCER_KINESIS'],
    ],
    [
      'a stage that feeds a keyed one from Kafka: it tells its marks to shards',
      { state, feeds, sources: [topic] },
      [...sinksAndLetters, 'ANNOUNCER_KINESIS'],
    ],
    [
      'a table, dead letters in SQS without offload',
      {
        sinks: [{ name: 't', kind: 'dynamodb', tableName: 't', partitionKey: 'id' }],
        deadLetters: { kind: 'sqs', queueUrl: 'q' },
      },
      ['KINESIS_SINK', ...otherSinks, 'DEAD_LETTERS_KINESIS', 'DEAD_LETTERS_S3', ...keyed],
    ],
  ])('%s', (_, change, expected) => {
    expect(leftOut(change)).toEqual(expected)
  })

  it('everything of Kafka where nothing is bound to it, and then esbuild is told nothing of its client', () => {
    expect(kafka.filter((name) => !allLeftOut({ state, feeds, sources: [stream] }).includes(name))).toEqual([])
    expect(bundlingFor(bindingsWith({}), entry).esbuildArgs).toBeUndefined()
  })

  it('nothing that a stage on Kafka needs', () => {
    const change = { state, sources: [topic], deadLetters: { kind: 'kafka', topic: 'dead', cluster } } as const
    expect(allLeftOut(change).filter((name) => kafka.includes(name))).toEqual([
      'KAFKA_SINK',
      'FRAMES_KAFKA',
      'ANNOUNCER_KAFKA',
    ])
    expect(bundlingFor(bindingsWith(change), entry).esbuildArgs).toEqual({
      '--alias:@platformatic/wasm-utils': require.resolve('@platformatic/wasm-utils/bundled'),
    })
    // In Docker no path of this machine is anything.
    expect(bundlingFor(bindingsWith(change), entry, { forceDockerBundling: true }).esbuildArgs).toEqual({
      '--alias:@platformatic/wasm-utils': '@platformatic/wasm-utils/bundled',
    })
  })
})

it('the announcer has streams and tables of its own, and no sink, dead letter or runner', () => {
  const { define } = bundlingFor({ formatVersion: 1, topology: 'shop', announces: [] }, entry)
  const names = Object.keys(define ?? {}).map((name) => name.replace('process.env.MILLRACE_ADAPTER_', ''))
  expect(names.filter((name) => kafka.includes(name)).sort()).toEqual([...kafka].sort())
  expect(names.filter((name) => !kafka.includes(name) && !otherEvents.includes(name))).toEqual([
    ...sinksAndLetters,
    'DEAD_LETTERS_S3',
    'STATE_DYNAMODB',
    'FRAMES_KINESIS',
    'LINEAGE_KINESIS',
  ])
})

describe('the options of esbuild', () => {
  it("are the user's where they say so, and what is left out stays left out", () => {
    const bundling = bundlingFor(bindingsWith({}), entry, { minify: false, define: { 'process.env.STAGE': '"test"' } })
    expect(bundling).toMatchObject({ minify: false, sourceMap: true, target: 'node24' })
    expect(bundling.define).toMatchObject({
      'process.env.MILLRACE_ADAPTER_KINESIS_SINK': '"false"',
      'process.env.STAGE': '"test"',
    })
  })
})

describe('the handler of an entry', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-handler-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const check = (text: string, handler = 'handler') => {
    const file = join(folder, 'entry.ts')
    writeFileSync(file, text)
    // As in a user's project, where both are installed.
    if (!existsSync(join(folder, 'node_modules')))
      symlinkSync(join(__dirname, '../../node_modules'), join(folder, 'node_modules'))
    return expect(() => checkHandlerExport('stage "orders"', file, handler))
  }

  it.each([
    ['export const hander: number = 1', 'exports hander'],
    ['export const a = 1\nexport default 1', 'exports a, default'],
    ['const handler = 1', 'exports nothing'],
    ["import './handler.ts'", 'exports nothing'],
  ])('is refused where %j is the entry', (text, found) => {
    check(text).toThrow(/^stage "orders" has the handler "handler", and .*entry\.ts exports /)
    check(text).toThrow(`${found}: export it there, or name another with \`handler\``)
  })

  it.each([
    ['a declaration', 'export const handler = async (event: object): Promise<void> => {}', 'handler'],
    ['another name', 'export function orders(): void {}', 'orders'],
    ['a list', 'const h = 1\nexport { h as handler }', 'handler'],
    ['what another file exports', "export { handler } from './other.ts'", 'handler'],
    ['all of another file', "export * from './other.ts'", 'handler'],
    ['CommonJS', 'exports.handler = () => {}', 'handler'],
    ['a wrapper in a layer', 'export const a = 1', '/opt/wrapper.handler'],
    ['what the bundler will refuse', 'export const = 1', 'handler'],
  ])('passes as %s', (_, text, handler) => {
    check(text, handler).not.toThrow()
  })
})

describe('the project of a handler', () => {
  let folder: string
  let handler: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'millrace-project-'))
    handler = join(folder, 'handler.ts')
    writeFileSync(handler, '')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('is where the nearest lock file is', () => {
    const root = join(__dirname, '../..')
    expect(locateCode(entry)).toEqual({ entry, depsLockFilePath: join(root, 'package-lock.json'), projectRoot: root })
  })

  it('is refused without a lock file, with what to do', () => {
    expect(() => locateCode(handler)).toThrow(/no lock file in a folder above .*run `npm install` once/)
  })

  it('has the function of the topics from the package that it imports, and is refused where that is not there', () => {
    const root = join(__dirname, '../..')
    expect(locateTopicFunction(entry).entry).toBe(join(root, 'lib/aws/kafka/topic-function.ts'))
    const alone = mkdtempSync(join(tmpdir(), 'millrace-alone-'))
    writeFileSync(join(alone, 'handler.ts'), '')
    writeFileSync(join(alone, 'package-lock.json'), '{}')
    expect(() => locateTopicFunction(join(alone, 'handler.ts'))).toThrow(/^the package millrace is not installed where/)
    rmSync(alone, { recursive: true })
  })

  it('is refused without esbuild, before the CDK tries Docker', () => {
    writeFileSync(join(folder, 'package-lock.json'), '{}')
    // In a process of its own: what the CDK finds depends on the working directory and on the path of commands.
    const bundle = pathToFileURL(join(__dirname, '../../lib/cdk/bundle.ts')).href
    const script = `import { locateCode } from '${bundle}'; try { locateCode('handler.ts') } catch (e) { console.log(e.message) }`
    const locate = () =>
      execFileSync(process.execPath, ['--input-type=module', '-e', script], {
        cwd: folder,
        env: { PATH: '' },
        encoding: 'utf8',
      })
    expect(locate()).toMatch(/^esbuild is not installed in .*run `npm install --save-dev esbuild`/)
    symlinkSync(join(__dirname, '../../node_modules'), join(folder, 'node_modules'))
    expect(locate()).toBe('')
  })
})
