/** Sinks of the user's own, which the handler file provides. */
import type { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs'
import type { SinkBinding } from '../plan/stage-bindings.ts'
import type { SinkDeclaration } from '../topology/graph.ts'
import type { SinkConnection } from './bind.ts'

export interface CustomSinkOptions {
  /** What the sink reads from the environment. No secrets: pass the ARN of one instead. @default none */
  readonly environment?: Readonly<Record<string, string>>
  /** Grants the function what the sink needs. Called once for each stage that writes to it. @default nothing is granted */
  readonly grant?: (target: NodejsFunction) => void
}

/**
 * A sink whose code the handler provides with `provide(handle, sink)`.
 *
 * @example
 * bind(webhooks, new CustomSink({ environment: { SECRET_ARN: secret.secretArn }, grant: (fn) => secret.grantRead(fn) }))
 */
export class CustomSink implements SinkConnection {
  readonly type = 'sink'
  readonly #options: CustomSinkOptions

  constructor(options: CustomSinkOptions = {}) {
    this.#options = options
  }

  bindingFor({ name }: SinkDeclaration): SinkBinding {
    return { name, kind: 'custom' }
  }

  connect(target: NodejsFunction): void {
    for (const [name, value] of Object.entries(this.#options.environment ?? {})) target.addEnvironment(name, value)
    this.#options.grant?.(target)
  }
}
