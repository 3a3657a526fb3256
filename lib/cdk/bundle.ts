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
import { bundleSettings } from '../plan/bundle-settings.ts'
import { adapterSwitches, type StageBindings } from '../plan/stage-bindings.ts'

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
  if (!hasEsbuild(path)) {
    throw new ConfigurationError(
      `esbuild is not installed in ${projectRoot}, so the CDK would try to bundle in Docker: run \`npm install --save-dev esbuild\`.`,
    )
  }
  return { entry: path, depsLockFilePath, projectRoot }
}

function lockFileAbove(folder: string): string | undefined {
  const found = lockFiles.map((name) => join(folder, name)).find((path) => existsSync(path))
  const parent = dirname(folder)
  return found ?? (parent === folder ? undefined : lockFileAbove(parent))
}

/** Looks where the CDK looks: next to aws-cdk-lib, as the handler or the app sees it, then on the path of commands. */
function hasEsbuild(entry: string): boolean {
  const nextToCdk = [entry, resolve('app.js')].some((from) => {
    try {
      createRequire(createRequire(from).resolve('aws-cdk-lib/package.json')).resolve('esbuild/package.json')
      return true
    } catch {
      return false
    }
  })
  return nextToCdk || spawnSync('esbuild', ['--version']).status === 0
}

/** How esbuild bundles the handler of a stage with these bindings; what the user says of it wins. */
export function bundlingFor(bindings: StageBindings, overrides: BundlingOptions = {}): BundlingOptions {
  return {
    format: OutputFormat.ESM,
    target: bundleSettings.target,
    minify: true,
    sourceMap: true,
    sourcesContent: false,
    mainFields: [...bundleSettings.mainFields],
    // The SDK is not external, so that it is the one that was tested, not the one that Lambda happens to bring.
    externalModules: [...bundleSettings.external],
    banner: bundleSettings.banner,
    ...overrides,
    define: { ...adapterSwitches(bindings), ...overrides.define },
  }
}
