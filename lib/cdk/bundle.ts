/**
 * How a handler file becomes the code of a function: one ESM file made by esbuild, without Docker, that holds the AWS SDK
 * in the version of the lock file and only those adapters that the stage is bound to.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { type BundlingOptions, OutputFormat } from 'aws-cdk-lib/aws-lambda-nodejs'
import { ConfigurationError } from '../core/errors.ts'
import { aliasesSeenFrom, bundleSettings, namedAliases } from '../plan/bundle-settings.ts'
import { type AnnouncerBindings, adapterSwitches, adaptersOf, type StageBindings } from '../plan/stage-bindings.ts'

/** Where the code of a function is, as absolute paths. */
export interface CodeLocation {
  readonly entry: string
  readonly depsLockFilePath: string
  readonly projectRoot: string
}

const lockFiles = ['package-lock.json', 'pnpm-lock.yaml', 'yarn.lock', 'bun.lock', 'bun.lockb']

/**
 * Finds the project of a handler file by the nearest lock file above it. Throws a {@link ConfigurationError} where the
 * file, the lock file or esbuild is missing: without esbuild the CDK would try to bundle in Docker.
 */
export function locateCode(entry: string): CodeLocation {
  // In JavaScript, or where the path comes from a variable that is not set.
  if (typeof entry !== 'string' || entry === '') {
    throw new ConfigurationError(
      `"entry" is ${JSON.stringify(entry)}: give StreamApplication the path of the file that exports the handler, relative to the folder in which the CDK app runs.`,
    )
  }
  const path = resolve(entry)
  if (!existsSync(path)) {
    throw new ConfigurationError(
      `there is no handler file ${path}: "entry" is relative to the folder in which the CDK app runs.`,
    )
  }
  const depsLockFilePath = lockFileAbove(dirname(path))
  if (!depsLockFilePath) {
    throw new ConfigurationError(
      `there is no lock file in a folder above ${path}: run \`npm install\` once, or add an empty package-lock.json.`,
    )
  }
  const projectRoot = dirname(depsLockFilePath)
  if (!esbuildNextToCdk(path) && spawnSync('esbuild', ['--version']).status !== 0) {
    throw new ConfigurationError(
      `esbuild is not installed in ${projectRoot}, so the CDK would try to bundle in Docker: run \`npm install --save-dev esbuild\`.`,
    )
  }
  return { entry: path, depsLockFilePath, projectRoot }
}

const topicFunction = 'aws/kafka/topic-function'

/**
 * The code of the function that makes and checks topics, in the package that the handler file imports: as it is published, or, in its
 * own repository, as it is written. Throws a {@link ConfigurationError} as {@link locateCode} does.
 */
export function locateTopicFunction(entry: string): CodeLocation {
  const { entry: handler } = locateCode(entry)
  const own = packageSeenBy(handler)
  const written = join(own, 'lib', `${topicFunction}.ts`)
  return locateCode(existsSync(written) ? written : join(own, 'dist/esm', `${topicFunction}.js`))
}

/** The folder of the package that a handler file imports as `millrace`. */
function packageSeenBy(handler: string): string {
  try {
    return dirname(createRequire(handler).resolve('millrace/package.json'))
  } catch {
    throw new ConfigurationError(
      `the package millrace is not installed where ${handler} would import it from, and the function that makes topics is bundled from there: run \`npm install millrace\` in its project.`,
    )
  }
}

function lockFileAbove(folder: string): string | undefined {
  const found = lockFiles.map((name) => join(folder, name)).find((path) => existsSync(path))
  const parent = dirname(folder)
  return found ?? (parent === folder ? undefined : lockFileAbove(parent))
}

/** The path of esbuild where the CDK looks for it: next to aws-cdk-lib, as the handler or the app sees it. */
function esbuildNextToCdk(entry: string): string | undefined {
  for (const from of [entry, resolve('app.js')]) {
    try {
      return createRequire(createRequire(from).resolve('aws-cdk-lib/package.json')).resolve('esbuild')
    } catch {}
  }
  return undefined
}

/**
 * Refuses an entry that exports nothing of the handler's name, which would fail at the first invocation only. It looks at
 * the one file, bundling nothing, so what it cannot see there passes: `export *`, CommonJS, and a file that is no
 * JavaScript yet, of which the bundler has more to say.
 */
export function checkHandlerExport(whose: string, entry: string, handler: string): void {
  const exported = exportsOf(entry)
  // With a dot it names a file too, such as a wrapper in a layer.
  if (exported === undefined || exported.includes(handler) || handler.includes('.')) return
  throw new ConfigurationError(
    `${whose} has the handler "${handler}", and ${entry} exports ${exported.length === 0 ? 'nothing' : exported.join(', ')}: export it there, or name another with \`handler\` in its settings.`,
  )
}

/** The names that an ES module exports, or undefined where that cannot be told from the file alone. */
function exportsOf(entry: string): readonly string[] | undefined {
  const path = esbuildNextToCdk(entry)
  if (path === undefined) return undefined
  try {
    const esbuild: typeof import('esbuild') = createRequire(path)(path)
    const { metafile, outputFiles } = esbuild.buildSync({
      entryPoints: [entry],
      format: 'esm',
      metafile: true,
      write: false,
      outdir: dirname(entry),
      logLevel: 'silent',
    })
    const isOpen = /^export \*|\bexports\b/m.test(outputFiles[0]?.text ?? '')
    return isOpen ? undefined : Object.values(metafile.outputs)[0]?.exports
  } catch {
    return undefined
  }
}

/** How esbuild bundles whatever runs in a function of ours. */
const bundling: BundlingOptions = {
  format: OutputFormat.ESM,
  target: bundleSettings.target,
  minify: true,
  sourceMap: true,
  sourcesContent: false,
  mainFields: [...bundleSettings.mainFields],
  // The SDK is not external, so that it is the one that was tested, not the one that Lambda happens to bring.
  externalModules: [...bundleSettings.external],
  banner: bundleSettings.banner,
}

/** How esbuild bundles an entry as the handler of a function with these bindings; what the user says of it wins. */
export function bundlingFor(
  bindings: StageBindings | AnnouncerBindings,
  entry: string,
  overrides: BundlingOptions = {},
): BundlingOptions {
  return {
    ...bundling,
    ...overrides,
    define: { ...adapterSwitches(bindings), ...overrides.define },
    ...aliasesFor(bindings, entry, overrides),
  }
}

/** How esbuild bundles the function that makes and checks topics. */
export const topicFunctionBundling = (entry: string): BundlingOptions => ({
  ...bundling,
  esbuildArgs: aliasArgs(aliasesSeenFrom(entry)),
})

/** What the Kafka client needs, where a function has it: events of Kafka are read without. */
function aliasesFor(
  bindings: StageBindings | AnnouncerBindings,
  entry: string,
  overrides: BundlingOptions,
): Pick<BundlingOptions, 'esbuildArgs'> {
  const hasClient = [...adaptersOf(bindings)].some((adapter) => adapter.includes('kafka') && adapter !== 'events-kafka')
  if (!hasClient) return {}
  // In Docker the project is in another place.
  const aliases = overrides.forceDockerBundling ? namedAliases : aliasesSeenFrom(entry)
  return { esbuildArgs: { ...aliasArgs(aliases), ...overrides.esbuildArgs } }
}

const aliasArgs = (aliases: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(aliases).map(([name, instead]) => [`--alias:${name}`, instead]))
