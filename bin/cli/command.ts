/** What a command of `millrace` is. */
import type { Arguments, CommandSyntax } from './arguments.ts'

export type Say = (line: string) => void

export interface Command {
  readonly syntax: CommandSyntax
  /** Resolves with the exit code. */
  run(args: Arguments, say: Say): Promise<number>
}
