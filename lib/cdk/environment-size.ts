import type { RenderedProperties } from './rendered.ts'

/** What Lambda takes of all variables of a function together. @see https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html */
const mostBytes = 4_096

/** At least so many bytes: what only the deployment knows counts as none. */
function leastBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  const { 'Fn::Join': joined } = Object(value)
  if (!Array.isArray(joined?.[1])) return 0
  return joined[1].reduce((sum: number, part: unknown) => sum + leastBytes(part), 0)
}

/** Refuses an environment that Lambda would refuse at the end of a deployment; `whose` names the function. */
export function environmentFindings(whose: string, { Environment }: RenderedProperties): string[] {
  const variables = Object.entries<unknown>(Object(Object(Environment).Variables))
  const bytes = variables.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + leastBytes(value), 0)
  if (bytes <= mostBytes) return []
  return [
    `the environment of ${whose} has ${bytes.toLocaleString('en')} bytes or more, and Lambda takes ${mostBytes.toLocaleString('en')}: give fewer or shorter variables, bind fewer sinks to one stage, or give a Kafka cluster one short certificate (of an elliptic curve) as its authority.`,
  ]
}
