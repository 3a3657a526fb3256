/**
 * Middy, for projects that load CommonJS as well as for those that load ES modules: `@middy/core` itself exports only
 * for `import`, so that jest in a CommonJS project could not load it. The CommonJS build of this file contains it.
 */
export { default as middy, type MiddlewareObj, type MiddyfiedHandler, type Request } from '@middy/core'
