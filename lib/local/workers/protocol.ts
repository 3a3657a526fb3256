/** What the pool and an environment say to each other over the process's IPC channel. */

/** Handed to the environment on its command line, as JSON. */
export interface EnvironmentOptions {
  readonly handlerFile: string
  readonly handlerName: string
  readonly parentPid: number
  readonly functionName: string
  readonly memoryLimitMb: number
}

export interface InvokeMessage {
  readonly kind: 'invoke'
  /** The event as JSON text: the handler must never share an object with anybody. */
  readonly event: string
  readonly requestId: string
  readonly functionArn: string
  readonly deadlineMs: number
}

export type EnvironmentMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'init-failed'; readonly reason: string }
  /** The answer as JSON text. */
  | { readonly kind: 'answered'; readonly answer: string }
  | { readonly kind: 'failed'; readonly reason: string }
