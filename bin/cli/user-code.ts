/**
 * Loads the user's topology file, whatever kind of project it is in.
 *
 * The file is bundled first, as the handler is: imports without extensions, JSON and TypeScript of CommonJS projects then
 * work as they do on AWS, and the bundler says which files it was made of.
 */
import { existsSync, statSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, extname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { BuildOptions, BuildResult, Message } from 'esbuild'
import { systemClock } from '../../lib/aws/system-clock.ts'
import { ConfigurationError, describeError } from '../../lib/core/errors.ts'
import { adapterSwitches } from '../../lib/plan/stage-bindings.ts'
import type { Topology } from '../../lib/topology/topology.ts'

export interface UserCode {
  readonly topology: Topology
  /** The user's own files that topology and handler are made of. */
  readonly files: readonly string[]
  /** When they began to be read, in ms since 1970. */
  readonly compiledAtMs: number
}

type Build = (options: BuildOptions) => Promise<BuildResult<{ metafile: true; write: false }>>

/** Nothing is sent from here. A function without sinks needs the fewest adapters. */
const withoutAdapters = adapterSwitches({
  formatVersion: 1,
  topology: '',
  sources: [],
  sinks: [],
  deadLetters: { kind: 'kinesis', streamName: '' },
})

/** The handler beside a topology: `handler.ts` where the topology is `topology.ts`. */
export function handlerBeside(topologyFile: string): string {
  return join(dirname(topologyFile), `handler${extname(topologyFile)}`)
}

/**
 * Compiles both files and loads the topology. Without a handler only the topology is compiled.
 *
 * @throws ConfigurationError of one line for a missing file, a compile error, a file that fails when it is loaded, and one
 * that exports no topology or several.
 */
export async function loadUserCode(topologyFile: string, handlerFile?: string): Promise<UserCode> {
  for (const file of [topologyFile, ...(handlerFile === undefined ? [] : [handlerFile])]) {
    if (!existsSync(file)) throw new ConfigurationError(`There is no file ${file}: check its path.`)
    if (statSync(file).isDirectory()) {
      const inside = join(file, 'topology.ts')
      const remedy = existsSync(inside) ? `say ${inside}` : 'name the file in it that exports the topology'
      throw new ConfigurationError(`${file} is a folder: ${remedy}.`)
    }
  }
  const build = buildOf(topologyFile)
  const compiledAtMs = systemClock.nowMs()
  const folder = await mkdtemp(join(tmpdir(), 'millrace-load-'))
  try {
    const result = await compile(build, folder, topologyFile, handlerFile)
    const bundle = join(folder, 'topology.mjs')
    const code = result.outputFiles.find(({ path }) => path === bundle)
    await writeFile(bundle, code?.contents ?? '')
    return { topology: await importTopology(bundle, topologyFile), files: ownFiles(result), compiledAtMs }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** esbuild belongs to the user's project, as for the CDK's own bundling. */
function buildOf(file: string): Build {
  for (const from of [resolve(file), resolve('package.json')]) {
    try {
      return createRequire(from)('esbuild').build
    } catch {}
  }
  throw new ConfigurationError(
    `esbuild is not installed where ${file} could find it: run \`npm install --save-dev esbuild\`.`,
  )
}

async function compile(build: Build, folder: string, topologyFile: string, handlerFile: string | undefined) {
  try {
    return await build({
      entryPoints: {
        topology: resolve(topologyFile),
        ...(handlerFile === undefined ? {} : { handler: resolve(handlerFile) }),
      },
      absWorkingDir: process.cwd(),
      outdir: folder,
      outExtension: { '.js': '.mjs' },
      bundle: true,
      write: false,
      metafile: true,
      platform: 'node',
      format: 'esm',
      target: 'node22',
      mainFields: ['module', 'main'],
      // CommonJS packages inside the bundle call require(), which an ES module lacks.
      banner: {
        js: "import{createRequire as millraceRequire}from'node:module';const require=millraceRequire(import.meta.url);",
      },
      define: withoutAdapters,
      logLevel: 'silent',
    })
  } catch (error) {
    throw new ConfigurationError(compileError(error), { cause: error })
  }
}

function compileError(error: unknown): string {
  const { errors } = error as { readonly errors?: readonly Message[] }
  const [first] = errors ?? []
  if (first === undefined) return describeError(error).message
  const { location, text } = first
  return location ? `${location.file}:${location.line}:${location.column + 1}: ${text}` : text
}

function ownFiles(result: BuildResult<{ metafile: true }>): readonly string[] {
  return Object.keys(result.metafile.inputs).filter((path) => !path.split('/').includes('node_modules'))
}

async function importTopology(bundle: string, file: string): Promise<Topology> {
  let exported: Readonly<Record<string, unknown>>
  try {
    exported = await import(pathToFileURL(bundle).href)
  } catch (error) {
    throw new ConfigurationError(`${file} fails when it is loaded: ${describeError(error).message}`, { cause: error })
  }
  return theTopology(exported, relative('.', file))
}

/** The bundle brings a Topology class of its own, so it is known by what it can do. */
function isTopology(value: unknown): value is Topology {
  const { name, graph, describe } = (value ?? {}) as Partial<Topology>
  return typeof name === 'string' && typeof graph === 'function' && typeof describe === 'function'
}

function theTopology(exported: Readonly<Record<string, unknown>>, file: string): Topology {
  const found = Object.entries(exported).filter(([, value]) => isTopology(value))
  const [topology, ...others] = new Set(found.map(([, value]) => value as Topology))
  if (topology !== undefined && others.length === 0) return topology
  const names = topology === undefined ? Object.keys(exported) : found.map(([name]) => name)
  const what = topology === undefined ? 'no Topology' : 'several topologies'
  const listed = names.length === 0 ? 'it exports nothing' : `its exports are ${names.join(', ')}`
  throw new ConfigurationError(`${file} exports ${what}: ${listed}. Export exactly one Topology.`)
}
