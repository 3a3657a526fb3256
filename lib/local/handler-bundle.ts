/** Bundles a handler file as the constructs do for AWS, so that what runs here is what is deployed. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import type { BuildOptions, BuildResult, Message } from 'esbuild'
import { ConfigurationError } from '../core/errors.ts'
import { adapterSwitch, adapters, adaptersOf, type StageBindings } from '../plan/stage-bindings.ts'

export interface HandlerBundleOptions {
  /** The file that exports the handler. */
  readonly entry: string
  /** Where the bundle is written: `handler.mjs` and its source map. */
  readonly directory: string
  /** Adapters that are not bound are left out. */
  readonly bindings: StageBindings
}

/**
 * Writes the bundle and returns its path.
 *
 * @throws ConfigurationError where the file or esbuild is missing, or the file cannot be bundled.
 * @example
 * const file = await bundleHandler({ entry: 'functions/flights/handler.ts', directory: '.millrace/flights/bundle', bindings })
 */
export async function bundleHandler({ entry, directory, bindings }: HandlerBundleOptions): Promise<string> {
  const entryFile = resolve(entry)
  if (!existsSync(entryFile)) throw new ConfigurationError(`There is no handler file ${entryFile}: check its path.`)
  const build = await esbuildOf(entryFile)
  const outfile = join(directory, 'handler.mjs')
  const needed = adaptersOf(bindings)
  const leftOut = adapters.filter((adapter) => !needed.has(adapter))
  try {
    await build({
      entryPoints: [entryFile],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node24',
      minify: true,
      sourcemap: true,
      sourcesContent: false,
      mainFields: ['module', 'main'],
      // CommonJS packages inside the bundle call require(), which an ES module lacks.
      banner: {
        js: "import{createRequire as millraceRequire}from'node:module';const require=millraceRequire(import.meta.url);",
      },
      define: Object.fromEntries(leftOut.map((adapter) => [adapterSwitch(adapter), '"false"'])),
      logLevel: 'silent',
    })
  } catch (error) {
    throw new ConfigurationError(`The handler file ${entryFile} cannot be bundled: ${buildFailure(error)}`, {
      cause: error,
    })
  }
  return outfile
}

/** esbuild belongs to the user's project, as for the CDK's own bundling. */
async function esbuildOf(entryFile: string): Promise<(options: BuildOptions) => Promise<BuildResult>> {
  for (const from of [entryFile, resolve('package.json')]) {
    try {
      return createRequire(from)('esbuild').build
    } catch {}
  }
  throw new ConfigurationError(
    `esbuild is not installed where ${entryFile} could find it: run \`npm install --save-dev esbuild\`.`,
  )
}

function buildFailure(error: unknown): string {
  const [first] = (error as { errors?: readonly Message[] }).errors ?? []
  if (first === undefined) return String(error)
  const { location, text } = first
  return location ? `${location.file}:${location.line}: ${text}` : text
}
