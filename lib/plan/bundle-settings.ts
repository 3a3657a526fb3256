/** How a handler file is bundled, on AWS and on the local run: one ES module that holds the AWS SDK in the locked version. */
import { createRequire } from 'node:module'

/** What esbuild is told wherever it bundles a handler. */
export const bundleSettings = {
  target: 'node24',
  mainFields: ['module', 'main'],
  /** CommonJS packages inside the bundle call require(), which an ES module lacks. */
  banner: "import{createRequire as millraceRequire}from'node:module';const require=millraceRequire(import.meta.url);",
  /**
   * Where the SDK looks for credentials on a developer's machine, in a container and on a server. It imports them only where the
   * environment holds none, and on Lambda it always does; they would be a tenth of the bundle.
   */
  external: [
    ...['http', 'ini', 'login', 'process', 'sso', 'web-identity'].map((name) => `@aws-sdk/credential-provider-${name}`),
    '@smithy/credential-provider-imds',
  ],
} as const

/** The Kafka client would look for a file of WebAssembly beside it, which one file of code has not: the other one holds it. */
const wasm = { name: '@platformatic/wasm-utils', instead: '@platformatic/wasm-utils/bundled' } as const

/** What is bundled in place of a package, by names: esbuild looks for them from the folder in which it runs. */
export const namedAliases: Readonly<Record<string, string>> = { [wasm.name]: wasm.instead }

/**
 * What is bundled in place of a package, as absolute paths: the package is one that the Kafka client brings, and where nothing is hoisted,
 * as with pnpm, only the client finds it. `entry` is the path of a file that imports `millrace`; where it does so in another way than by
 * Node's rules, the names are left to esbuild.
 */
export function aliasesSeenFrom(entry: string): Readonly<Record<string, string>> {
  try {
    const client = createRequire(createRequire(entry).resolve('millrace/package.json')).resolve('@platformatic/kafka')
    return { [wasm.name]: createRequire(client).resolve(wasm.instead) }
  } catch {
    return namedAliases
  }
}
