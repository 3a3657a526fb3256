/** What a deployed function reads of its environment: its bindings, and where the clients of services go. */
import { ConfigurationError, describeError } from '../core/errors.ts'
import { unpackedBindings } from '../plan/packed-bindings.ts'
import type { Plan } from '../plan/plan.ts'
import { type AnnouncerBindings, bindingsVariable, type StageBindings } from '../plan/stage-bindings.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads the bindings. Throws a {@link ConfigurationError} where the variable is missing, is not what this release reads, or
 * belongs to another topology.
 */
export function parseBindings(planned: Plan, environment: Environment): StageBindings | AnnouncerBindings {
  const text = environment[bindingsVariable]
  if (text === undefined || text === '') {
    throw new ConfigurationError(
      `the environment variable ${bindingsVariable} is missing: deploy the handler of topology "${planned.topology}" with StreamApplication, or give streamHandler its ports (in tests, memoryPorts()).`,
    )
  }
  let bindings: StageBindings | AnnouncerBindings
  try {
    bindings = unpackedBindings(JSON.parse(text))
  } catch (error) {
    throw new ConfigurationError(
      `the environment variable ${bindingsVariable} is not JSON (${describeError(error).name}): it is written by StreamApplication and not to be edited.`,
    )
  }
  if (bindings.formatVersion !== 1) {
    throw new ConfigurationError(
      `the environment variable ${bindingsVariable} has format version ${bindings.formatVersion}, and this release of Millrace reads 1: deploy handler and stack with the same release.`,
    )
  }
  if (bindings.topology !== planned.topology) {
    throw new ConfigurationError(
      `the function is bound for topology "${bindings.topology}", but its handler runs "${planned.topology}": check the \`entry\` of its StreamApplication.`,
    )
  }
  return bindings
}

/** Where the clients of a service go: the SDK's own variables, so that emulators are set as for any other program. */
export function endpointOf(service: string, environment: Environment): { readonly endpoint?: string } {
  const endpoint = environment[`AWS_ENDPOINT_URL_${service}`] ?? environment.AWS_ENDPOINT_URL
  return endpoint === undefined ? {} : { endpoint }
}
