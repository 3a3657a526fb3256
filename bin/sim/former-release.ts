/** The release of Millrace before this one, as one file: its code runs beside ours in runs that mix releases. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { compileFunction } from 'node:vm'
import { gunzipSync } from 'node:zlib'
import type { Release } from '../../lib/testing/simulator/release.ts'

/** From the root of the repository, where commands and tests run. */
export const formerReleasePath = 'test/testing/simulator/former-release.cjs.gz'

/** What the simulated applications are made of: the same in both releases. */
const workload = ['release.ts', 'workload.ts', 'lines.ts', 'variant.ts', 'briefs.ts', 'timed-workload.ts', 'random.ts']

/** Tells whether the applications have changed since the file was made. */
export function workloadHash(): string {
  const hash = createHash('sha256')
  for (const file of workload) hash.update(readFileSync(`lib/testing/simulator/${file}`))
  return hash.digest('hex')
}

export interface FormerRelease extends Release {
  readonly madeOf: { readonly commit: string; readonly workload: string }
}

let loaded: FormerRelease | undefined

/** Loads it once. */
export function formerRelease(): FormerRelease {
  loaded ??= load()
  return loaded
}

function load(): FormerRelease {
  const code = gunzipSync(readFileSync(formerReleasePath)).toString()
  const module = { exports: {} as FormerRelease }
  // The bundle asks for modules of Node alone.
  const run = compileFunction(code, ['module', 'exports', 'require'], { filename: formerReleasePath })
  run(module, module.exports, (name: string) => process.getBuiltinModule(name))
  return module.exports
}
