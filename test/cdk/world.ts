/** What the tests of constructs share: an app whose functions are not bundled, and the shop bound in it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { App, Stack } from 'aws-cdk-lib'
import { Match, Template } from 'aws-cdk-lib/assertions'
import { Stream, StreamEncryption } from 'aws-cdk-lib/aws-kinesis'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import {
  bind,
  KinesisSink,
  KinesisSource,
  StreamApplication,
  type StreamApplicationProps,
} from '../../lib/cdk/index.ts'
import { unpackedBindings } from '../../lib/plan/packed-bindings.ts'
import { shop } from './fixtures/topology.ts'

export const entry = join(__dirname, 'fixtures/handler.ts')

/** No bundling, and the offline validator of the CDK. */
export const validated = { 'aws:cdk:bundling-stacks': [], '@aws-cdk/core:validateAgainstDefaultRules': true }

/** A stack whose functions are not bundled, and which the offline validator of the CDK looks at. */
export function newStack(): Stack {
  return new Stack(new App({ context: validated }), 'Test')
}

export const newStream = (stack: Stack, id: string): Stream =>
  new Stream(stack, id, { encryption: StreamEncryption.MANAGED })

/** The shop with every name bound to a stream of its own; `change` replaces parts of its properties. */
export function shopIn(
  stack: Stack,
  change: (parts: ReturnType<typeof shop>) => Partial<StreamApplicationProps> = () => ({}),
) {
  const parts = shop()
  const changed = change(parts)
  return new StreamApplication(stack, 'Shop', {
    topology: parts.app,
    entry,
    bind: changed.bind ?? [
      bind(parts.orders, new KinesisSource(newStream(stack, 'Orders'))),
      bind(parts.refunds, new KinesisSource(newStream(stack, 'Refunds'))),
      bind(parts.ledger, new KinesisSink(newStream(stack, 'Ledger'))),
      bind(parts.audit, new KinesisSink(newStream(stack, 'Audit'))),
    ],
    ...changed,
  })
}

/** The statements of the role of one stage, as `action: resource` lines with logical ids in short. */
export function grantsOf(stack: Stack, application: StreamApplication, stage: string): string[] {
  return grantsOfRole(stack, application.stage(stage).function)
}

/** The statements of the role of a function, as {@link grantsOf} gives them. */
export function grantsOfRole(stack: Stack, target: IFunction): string[] {
  const role = stack.resolve(target.role?.roleArn)['Fn::GetAtt'][0]
  const policies = Template.fromStack(stack).findResources('AWS::IAM::Policy', {
    Properties: { Roles: Match.arrayWith([{ Ref: role }]) },
  })
  const statements = Object.values(policies).flatMap((policy) => policy.Properties.PolicyDocument.Statement)
  return statements
    .flatMap(({ Action, Resource }) =>
      [Action]
        .flat()
        .flatMap((action: string) => [Resource].flat().map((resource) => `${action} ${shorten(resource)}`)),
    )
    .sort()
}

/** `Orders` for `{"Fn::GetAtt":["Orders1A2B3C4D","Arn"]}`; what stands behind a joined ARN is kept. */
function shorten(resource: unknown): string {
  const [, id = JSON.stringify(resource)] =
    /"Fn::GetAtt":\["(\w+?)[0-9A-F]{8}","Arn"\]/.exec(JSON.stringify(resource)) ?? []
  const [, suffix = ''] = /,"(\/[^"]*)"\]\]/.exec(JSON.stringify(resource)) ?? []
  return id + suffix
}

/** What a stage's function is told, with references in place of names. */
export function bindingsOf(stack: Stack, application: StreamApplication, stage: string) {
  return bindingsOfFunction(stack, application.stage(stage).function)
}

/** What a function is told, as {@link bindingsOf} gives it. */
export function bindingsOfFunction(stack: Stack, target: IFunction) {
  const id = stack.getLogicalId(target.node.defaultChild as never)
  const { MILLRACE_BINDINGS } = Template.fromStack(stack).toJSON().Resources[id].Properties.Environment.Variables
  const parts: unknown[] = MILLRACE_BINDINGS['Fn::Join'][1]
  const text = parts.map((part) => (typeof part === 'string' ? part : shorten(part).replaceAll('"', "'"))).join('')
  return unpackedBindings(JSON.parse(text))
}

/** What the offline validator of the CDK finds, warnings included. */
export function findingsIn(directory: string): string[] {
  const { pluginReports } = JSON.parse(readFileSync(join(directory, 'validation-report.json'), 'utf8'))
  return pluginReports.flatMap((report: { violations: { description: string }[] }) =>
    report.violations.map((violation) => violation.description),
  )
}

/** The same of an app that was not synthesised yet, with the findings of its plugins. */
export function findingsAfterSynth(app: App): string[] {
  const printed = jest.spyOn(console, 'error').mockImplementation()
  try {
    app.synth()
  } catch (error) {
    // Findings are errors; what they are is in the report.
    if (!(error as Error).message.includes('validation-report.json')) throw error
  } finally {
    printed.mockRestore()
  }
  return findingsIn(app.outdir)
}
