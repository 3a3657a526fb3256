import { execFile } from 'node:child_process'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

/**
 * Runs the handler of a bundle in a process of its own, as Lambda would, with nothing else in its environment: the answer, or the name and
 * message of what it threw.
 */
export async function invokeBundle(
  file: string,
  event: unknown,
  environment: Readonly<Record<string, string>>,
  remainingMs = 20_000,
): Promise<unknown> {
  const code = `
    const { handler } = await import(${JSON.stringify(pathToFileURL(file).href)})
    const context = { getRemainingTimeInMillis: () => ${remainingMs} }
    const answer = await handler(${JSON.stringify(event)}, context).catch(({ name, message }) => ({ name, message }))
    console.log('answer ' + JSON.stringify(answer))
    process.exit()`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], {
    cwd: dirname(file),
    env: { AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'none', AWS_SECRET_ACCESS_KEY: 'none', ...environment },
  })
  return JSON.parse(/answer (.*)/.exec(stdout)?.[1] ?? 'null')
}
