/** Why findings of cdk-nag are right as they are, said by the constructs, so that applications made of them pass. */
import { Validations } from 'aws-cdk-lib'
import type { IConstruct } from 'constructs'

/** Says why a rule of cdk-nag does not hold for a construct and what is below it. */
export function acknowledge(scope: IConstruct, rule: string, reason: string): void {
  Validations.of(scope).acknowledge({ id: `AwsSolutions::${rule}`, reason })
}

/** Says why a policy names a resource with a wildcard in it. */
export function acknowledgeWildcard(scope: IConstruct, resource: string, reason: string): void {
  acknowledge(scope, `AwsSolutions-IAM5[Resource::${resource}]`, reason)
}

/** A resolved value as cdk-nag writes it in the names of its findings: `<Bucket1A2B3C4D.Arn>/*`. */
export function flattened(value: unknown): string {
  if (typeof value === 'string') return value
  const { 'Fn::Join': joined, 'Fn::GetAtt': attribute, 'Fn::ImportValue': imported, Ref: reference } = Object(value)
  if (joined) return joined[1].map(flattened).join(joined[0])
  if (attribute) return `<${attribute.map(flattened).join('.')}>`
  if (imported) return flattened(imported)
  return reference ? `<${reference}>` : JSON.stringify(value)
}
