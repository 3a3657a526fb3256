#!/usr/bin/env node
/** `millrace`: exit code 0 where all is well, 1 where something failed, 2 where what was typed is wrong. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ConfigurationError } from '../lib/core/errors.ts'
import { usageCode } from './cli/arguments.ts'
import { runCommand } from './cli/commands.ts'

// Nobody reads any more, as behind `| head`.
process.stdout.on('error', () => process.exit(1))

/** What the operating system refuses, such as a full disk, says enough in its message. */
const isSystemError = (error: unknown): error is Error => error instanceof Error && 'syscall' in error

/** Of the package that this file is in, wherever in it that is. */
function version(folder: string): string {
  const file = join(folder, 'package.json')
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : version(dirname(folder))
}

async function exitCode(): Promise<number> {
  const typed = process.argv.slice(2)
  if (['--version', '-v', 'version'].includes(typed[0] ?? '')) {
    console.log(version(import.meta.dirname))
    return 0
  }
  try {
    return await runCommand(typed, (line) => void process.stdout.write(`${line}\n`))
  } catch (error) {
    if (!(error instanceof ConfigurationError) && !isSystemError(error)) throw error
    console.error(`millrace: ${error.message}`)
    return error instanceof ConfigurationError && error.code === usageCode ? 2 : 1
  }
}

const code = await exitCode()
// A topology file that leaves a timer or a connection behind must not keep the command from ending.
process.stdout.write('', () => process.exit(code))
