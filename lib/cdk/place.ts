/** Where a resource is, compared with the function that uses it: the function's clients speak to its own region only. */
import { Annotations, type IResource, Stack, Token, TokenComparison } from 'aws-cdk-lib'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import type { Construct } from 'constructs'
import { ConfigurationError } from '../core/errors.ts'
import { resourceIdentity } from './resource-identity.ts'

/** What a function does with a resource. */
export interface Use {
  readonly resource: IResource
  readonly arn: string
  /** The IAM actions, such as `kinesis:PutRecords`. */
  readonly actions: readonly string[]
}

/**
 * Throws a {@link ConfigurationError} for a resource in another region. One in another account is shown at synth with the
 * policy that it needs there, which this stack cannot write. What is not known at synth is taken.
 */
export function checkPlace(target: IFunction, { resource, arn, actions }: Use): void {
  checkPlaceOf(target, { identity: resourceIdentity(resource, arn), ...placeOf(resource, arn) }, actions)
}

/** Where something is that has no construct. */
export interface Place {
  readonly identity: string
  readonly region: string
  readonly account: string
}

/** As {@link checkPlace}. */
export function checkPlaceOf(
  target: IFunction,
  { identity, region, account }: Place,
  actions: readonly string[],
): void {
  const stack = Stack.of(target)
  if (differ(region, stack.region)) {
    throw new ConfigurationError(
      `${identity} is in the region ${region}, and the function ${target.node.path} in ${stack.region}: an application reads and writes in its own region only; deploy it in ${region}, or bind a resource in ${stack.region}.`,
    )
  }
  if (differ(account, stack.account)) {
    Annotations.of(target).addWarningV2(
      'millrace:other-account',
      `${identity} is in the account ${account}, and the function ${target.node.path} in ${stack.account}: the policy of the resource must allow the function's role ${actions.join(', ')}, and so must that of its KMS key, where it has one; this stack cannot write policies there.`,
    )
  }
}

/** Throws a {@link ConfigurationError} for a table of a stage in another region or account: the stage finds it by its name, in its own. */
export function refuseElsewhere(scope: Construct, what: string, table: IResource, arn: string): void {
  const stack = Stack.of(scope)
  const { region, account } = placeOf(table, arn)
  if (!differ(region, stack.region) && !differ(account, stack.account)) return
  throw new ConfigurationError(
    `${what} is ${resourceIdentity(table, arn)}, in the account ${account} and the region ${region}, and the application is in ${stack.account} and ${stack.region}: bring a table of that account and region.`,
  )
}

/** By the ARN where that is known: what is imported may stand in a stack of another place. */
function placeOf(resource: IResource, arn: string): { readonly region: string; readonly account: string } {
  const [, , , region, account] = Token.isUnresolved(arn) ? [] : arn.split(':')
  return { region: region || resource.env.region, account: account || resource.env.account }
}

const differ = (one: string, other: string): boolean => Token.compareStrings(one, other) === TokenComparison.DIFFERENT
