/** The bookings application as the release before deployed it, code and stack, as one file: `bundle-release.ts` makes it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

/** From the root of the repository, where commands and tests run. */
export const formerReleasePath = 'test/deploy/former-release.json.gz'

export interface FormerRelease {
  readonly commit: string
  /** ES modules that ask for packages by their names: the one that exports the handler, and the one with the stacks. */
  readonly handler: string
  readonly stacks: string
}

/** Where its stack looks for its handler, from the folder in which it runs. */
export const formerHandler = 'functions/bookings/handler.ts'

/** Writes its files to a folder of this repository, where they find their packages. Gives back the path of its stacks. */
export function unpackFormerRelease(folder: string): string {
  const { handler, stacks }: FormerRelease = JSON.parse(gunzipSync(readFileSync(formerReleasePath)).toString())
  mkdirSync(join(folder, 'functions/bookings'), { recursive: true })
  writeFileSync(join(folder, 'functions/bookings/bundle.mjs'), handler)
  writeFileSync(join(folder, formerHandler), "export { handler } from './bundle.mjs'\n")
  writeFileSync(join(folder, 'stacks.mjs'), stacks)
  return join(folder, 'stacks.mjs')
}
