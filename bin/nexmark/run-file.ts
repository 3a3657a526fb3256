/** Runs a query over an event file. */
import { accessSync, constants } from 'node:fs'
import type { Topology } from '../../lib/topology/topology.ts'
import { LineFile } from './line-file.ts'
import { linesInPieces } from './line-reader.ts'
import { QueryRun } from './query-run.ts'

export interface FileRun {
  readonly events: number
  readonly results: number
  /** Bids that came later than the queries allow: they are in no result. */
  readonly late: number
  /** Lines that are no event, one text each. */
  readonly refused: readonly string[]
}

/**
 * Reads events from one file and writes the results to another, both one JSON object a line. The end of the file is the end
 * of the input. `onProgress` is told how many events were read, now and then.
 */
export async function runFile(
  app: Topology,
  files: { readonly from: string; readonly to: string },
  onProgress: (events: number) => void = () => undefined,
): Promise<FileRun> {
  // A wrong name must not cost the results of an earlier run.
  accessSync(files.from, constants.R_OK)
  const output = new LineFile(files.to)
  try {
    let [events, results, late] = [0, 0, 0]
    const run = new QueryRun({
      app,
      take(sink, line) {
        if (sink === 'late') late++
        else {
          results++
          output.write(line)
        }
      },
    })
    for (const lines of linesInPieces(files.from)) {
      await run.add(lines)
      events += lines.length
      onProgress(events)
    }
    await run.end()
    return { events, results, late, refused: run.deadLetters }
  } finally {
    output.close()
  }
}
