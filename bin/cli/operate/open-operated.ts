/** Opens the application that the flags of a command name: of a CloudFormation stack, or of a local run. */
import type { Closing } from '../../../lib/local/closing.ts'
import { type Arguments, type Flag, usage } from '../arguments.ts'
import type { Operated } from './operated.ts'

export const placeFlags: Readonly<Record<string, Flag>> = {
  app: { value: 'NAME', help: 'the local run of that topology (default: the only one in .millrace)' },
  stack: { value: 'NAME', help: 'the application of that CloudFormation stack, instead of a local run' },
  application: { value: 'NAME', help: 'with --stack: the topology, where the stack holds several' },
  endpoint: { value: 'URL', help: 'with --stack: where it is (default: AWS, as the environment says)' },
}

/** Opens what the flags name, until the closing. */
export async function openOperated(args: Arguments, closing: Closing): Promise<Operated> {
  if (!args.has('stack')) {
    if (args.has('endpoint') || args.has('application')) throw usage('--endpoint and --application go with --stack.')
    const { openLocal } = await import('./operated-local.ts')
    return openLocal(args.text('app'), closing)
  }
  if (args.has('app')) throw usage('--app and --stack name different places: give one.')
  const { openStack } = await import('./operated-stack.ts')
  return openStack(
    { stack: args.text('stack') ?? '', application: args.text('application'), endpoint: args.text('endpoint') },
    closing,
  )
}
