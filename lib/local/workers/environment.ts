/**
 * The process of one execution environment: loads the handler's module once, then runs one invocation after another, as the
 * Node 24 runtime of Lambda does. It is started by the pool, never by hand.
 *
 * Invariants:
 * 1. One invocation at a time; the pool sends the next only after the answer.
 * 2. The process ends when its parent is gone, even while the handler keeps its event loop busy.
 * 3. Ctrl-C is the parent's affair: a terminal sends SIGINT to every process of the group, and an invocation in flight must not die of it.
 *
 * Unlike Lambda it is not frozen between invocations: what a handler leaves running goes on at once, not in the next invocation.
 */
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { EnvironmentMessage, EnvironmentOptions, InvokeMessage } from './protocol.ts'

type Handler = (event: unknown, context: unknown) => unknown

const maxAnswerBytes = 6 * 1024 * 1024
const options = JSON.parse(process.argv[2] ?? '{}') as EnvironmentOptions

/** The channel belongs to this file alone: on Lambda a handler finds no `process.send`, and here it could forge answers. */
const send = process.send?.bind(process)
process.send = undefined

process.on('disconnect', () => process.exit(0))
process.on('SIGINT', () => {})
watchParent()
loadHandler().then(
  (handler) => {
    process.on('message', (message) => void answer(handler, message as InvokeMessage))
    say({ kind: 'ready' })
  },
  (thrown) => say({ kind: 'init-failed', reason: reasonOf(thrown) }),
)

function say(message: EnvironmentMessage): void {
  send?.(message)
}

/** A handler in an endless loop would never see that the channel closed; a thread of its own does. */
function watchParent(): void {
  const script = `setInterval(() => { if (process.ppid !== ${options.parentPid}) process.kill(process.pid, 'SIGKILL') }, 500)`
  new Worker(script, { eval: true, execArgv: [], stdout: false, stderr: false }).unref()
}

async function loadHandler(): Promise<Handler> {
  const { handlerFile, handlerName } = options
  const module = (await import(pathToFileURL(handlerFile).href)) as Record<string, unknown>
  // A CommonJS bundle may hide its exports behind `default`.
  const handler = module[handlerName] ?? (module.default as Record<string, unknown> | undefined)?.[handlerName]
  if (typeof handler !== 'function') {
    throw named('Runtime.HandlerNotFound', `${handlerFile} exports no function ${handlerName}`)
  }
  if (handler.length >= 3) {
    const remedy = 'make it async and leave the third parameter out'
    throw named('Runtime.CallbackHandlerDeprecated', `Node 24 on Lambda refuses callback-style handlers: ${remedy}`)
  }
  return handler as Handler
}

async function answer(handler: Handler, message: InvokeMessage): Promise<void> {
  try {
    const payload = await handler(JSON.parse(message.event), contextOf(message))
    say({ kind: 'answered', answer: serialise(payload) })
  } catch (thrown) {
    say({ kind: 'failed', reason: reasonOf(thrown) })
  }
}

function serialise(payload: unknown): string {
  let text: string
  try {
    // undefined, a function and a symbol have no JSON: Lambda answers null for them.
    text = JSON.stringify(payload) ?? 'null'
  } catch (thrown) {
    throw named('Runtime.MarshalError', `Unable to stringify response body: ${reasonOf(thrown)}`)
  }
  const bytes = Buffer.byteLength(text)
  if (bytes > maxAnswerBytes) {
    throw named('Function.ResponseSizeTooLarge', `the answer has ${bytes} bytes, above the limit of ${maxAnswerBytes}`)
  }
  return text
}

function contextOf({ requestId, functionArn, deadlineMs }: InvokeMessage) {
  const { functionName, memoryLimitMb } = options
  return {
    callbackWaitsForEmptyEventLoop: true,
    functionName,
    functionVersion: '$LATEST',
    invokedFunctionArn: functionArn,
    memoryLimitInMB: String(memoryLimitMb),
    awsRequestId: requestId,
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: `local/${process.pid}`,
    getRemainingTimeInMillis: () => Math.max(0, deadlineMs - Date.now()),
  }
}

function named(name: string, message: string): Error {
  return Object.assign(new Error(message), { name })
}

/** Whatever was thrown, `undefined` and objects that cannot be shown included. */
function reasonOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : `the handler threw ${String(thrown)}`
  } catch {
    return 'the handler threw a value that cannot be shown'
  }
}
