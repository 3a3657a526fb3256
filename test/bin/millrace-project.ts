import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { WatchedRun } from './watched-run.ts'

/** A user's project in a directory of its own, and the commands that run in it. */
export class MillraceProject {
  readonly directory: string
  readonly #commands: WatchedRun[] = []

  private constructor(directory: string) {
    this.directory = directory
  }

  static async create(): Promise<MillraceProject> {
    const project = new MillraceProject(await mkdtemp(join(tmpdir(), 'millrace-cli-')))
    await symlink(resolve('node_modules'), join(project.directory, 'node_modules'))
    await project.write('package.json', '{"name":"app","type":"commonjs"}')
    return project
  }

  /** Writes a file, all of it at once for who watches it; the package is found where this repository has it. */
  async write(path: string, text: string): Promise<void> {
    const file = join(this.directory, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(`${file}.new`, text.replaceAll("from 'millrace'", `from '${resolve('lib/index.ts')}'`))
    await rename(`${file}.new`, file)
  }

  read(path: string): Promise<string> {
    return readFile(join(this.directory, path), 'utf8')
  }

  /** The lines of a file that something is appended to; none while it is not there. */
  async lines(path: string): Promise<readonly string[]> {
    return (await this.read(path).catch(() => '')).split('\n').filter((line) => line !== '')
  }

  run(...args: readonly string[]): WatchedRun {
    const command = WatchedRun.millrace(this.directory, args)
    this.#commands.push(command)
    return command
  }

  /** Runs a command to its end. */
  async result(...args: readonly string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
    const command = this.run(...args)
    command.input('')
    return { code: await command.ends(), stdout: command.stdout, stderr: command.stderr }
  }

  async clear(): Promise<void> {
    await Promise.all(this.#commands.map((command) => command.clear()))
    await rm(this.directory, { recursive: true, force: true })
  }
}
