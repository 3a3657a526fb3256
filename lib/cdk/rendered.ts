/** What a resource will say in the template: what was set or overridden on its L1 construct is in it, whoever did it. */
import { CfnResource, Stack } from 'aws-cdk-lib'
import type { IConstruct } from 'constructs'

/** The properties of a resource by their names in CloudFormation. Values that only the deployment knows are objects. */
export type RenderedProperties = Readonly<Record<string, unknown>>

/** The properties of what a construct became; undefined for one that is imported, of which the stack knows nothing. */
export function renderedProperties(construct: IConstruct): RenderedProperties | undefined {
  const resource = construct.node.defaultChild
  if (resource === undefined || !CfnResource.isCfnResource(resource)) return undefined
  const { Resources = {} } = Stack.of(resource).resolve(resource._toCloudFormation())
  const [rendered] = Object.values<{ readonly Properties?: RenderedProperties }>(Resources)
  return rendered?.Properties ?? {}
}

/** Refuses at synth, when nothing changes any more, what `findings` says of a resource. One that is imported passes. */
export function refuseAtSynth(
  scope: IConstruct,
  resource: IConstruct,
  findings: (properties: RenderedProperties) => readonly string[],
): void {
  scope.node.addValidation({
    validate: () => {
      const properties = renderedProperties(resource)
      return properties === undefined ? [] : [...findings(properties)]
    },
  })
}
