/** How a handler file is bundled, on AWS and on the local run: one ES module that holds the AWS SDK in the locked version. */

/** What esbuild is told wherever it bundles a handler. */
export const bundleSettings = {
  target: 'node24',
  mainFields: ['module', 'main'],
  /** CommonJS packages inside the bundle call require(), which an ES module lacks. */
  banner: "import{createRequire as millraceRequire}from'node:module';const require=millraceRequire(import.meta.url);",
  /**
   * Where the SDK looks for credentials on a developer's machine. It imports them only where the environment holds none,
   * and on Lambda it always does; they would be a tenth of the bundle.
   */
  external: ['ini', 'login', 'process', 'sso', 'web-identity'].map((name) => `@aws-sdk/credential-provider-${name}`),
  /** The Kafka client would look for a file of WebAssembly beside it, which one file of code has not: this one holds it. */
  alias: { '@platformatic/wasm-utils': '@platformatic/wasm-utils/bundled' },
} as const
