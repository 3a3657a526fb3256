/** Tells whether two constructs stand for one resource, without knowing its name, which CloudFormation gives later. */
import { type IResource, Resource, Stack, Token } from 'aws-cdk-lib'

/**
 * The ARN where it is known at synth; for what a stack makes itself, the path of its construct; for what is imported by
 * a reference, that reference.
 */
export function resourceIdentity(resource: IResource, arn: string): string {
  if (!Token.isUnresolved(arn)) return arn
  if (Resource.isOwnedResource(resource)) return resource.node.path
  return JSON.stringify(Stack.of(resource).resolve(arn))
}
