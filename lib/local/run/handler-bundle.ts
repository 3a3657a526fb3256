/** Bundles a handler file as the constructs do for AWS, so that what runs here is what is deployed. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import type { BuildOptions, BuildResult, Message } from 'esbuild'
import { ConfigurationError } from '../../core/errors.ts'
import { aliasesSeenFrom, bundleSettings } from '../../plan/bundle-settings.ts'
import { type AnnouncerBindings, adapterSwitches, type StageBindings } from '../../plan/stage-bindings.ts'

export interface HandlerBundleOptions {
  /** The file that exports the handler. */
  readonly entry: string
  /** Where the bundle is written: `handler.mjs` and its source map. */
  readonly directory: string
  /** Adapters that are not bound are left out. */
  readonly bindings: StageBindings | AnnouncerBindings
  /** Packages that the bundle is not to hold. @default none */
  readonly external?: readonly string[]
}

/**
 * Writes the bundle and returns its path.
 *
 * @throws ConfigurationError where the file or esbuild is missing, or the file cannot be bundled.
 * @example
 * const file = await bundleHandler({ entry: 'functions/flights/handler.ts', directory: '.millrace/flights/bundle', bindings })
 */
export async function bundleHandler({
  entry,
  directory,
  bindings,
  external = [],
}: HandlerBundleOptions): Promise<string> {
  const entryFile = resolve(entry)
  if (!existsSync(entryFile)) throw new ConfigurationError(`There is no handler file ${entryFile}: check its path.`)
  const build = await esbuildOf(entryFile)
  const outfile = join(directory, 'handler.mjs')
  try {
    await build({
      entryPoints: [entryFile],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: bundleSettings.target,
      minify: true,
      sourcemap: true,
      sourcesContent: false,
      mainFields: [...bundleSettings.mainFields],
      external: [...bundleSettings.external, ...external],
      banner: { js: bundleSettings.banner },
      alias: aliasesSeenFrom(entryFile),
      define: adapterSwitches(bindings),
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
