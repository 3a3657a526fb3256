/** Tells whether two constructs stand for one resource, without knowing its name, which CloudFormation gives later. */
import {
  DefaultTokenResolver,
  type IResource,
  type ITokenResolver,
  Reference,
  Resource,
  Stack,
  Token,
  Tokenization,
} from 'aws-cdk-lib'
import { RootConstruct } from 'constructs'

/**
 * The ARN where it is known at synth; for what a stack makes itself, the path of its construct; for what is imported by
 * a reference, that reference.
 */
export function resourceIdentity(resource: IResource, arn: string): string {
  if (!Token.isUnresolved(arn)) return arn
  if (Resource.isOwnedResource(resource)) return resource.node.path
  return JSON.stringify(Stack.of(resource).resolve(arn))
}

/**
 * Tells whether two values are one that only the deployment knows, such as names of topics: equal where they are made alike, and free of
 * tokens. What is known at synth is its own. No stack is needed: an attribute of a construct is named by the construct's path, since
 * constructs of two stacks may have one logical id.
 */
export function valueIdentity(value: string): string {
  if (!Token.isUnresolved(value)) return value
  const resolved = Tokenization.resolve(value, { scope: nowhere, resolver: byPath, preparing: false })
  return typeof resolved === 'string' ? resolved : JSON.stringify(resolved)
}

const nowhere = new RootConstruct()
const inParts = new DefaultTokenResolver({ join: (...parts: unknown[]) => parts })
const byPath: ITokenResolver = {
  resolveToken: (token, context, postProcessor) =>
    Reference.isReference(token)
      ? `${token.target.node.path}.${token.displayName}`
      : inParts.resolveToken(token, context, postProcessor),
  resolveString: (fragments, context) => inParts.resolveString(fragments, context),
  resolveList: (list, context) => inParts.resolveList(list, context),
}
