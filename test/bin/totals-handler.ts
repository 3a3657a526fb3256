import { join } from 'node:path'

/** A handler file beside `./topology`, which exports `orders` and its sink `totals`: the sink notes each total as a line of a file. */
export const totalsHandler = (directory: string): string => `
import { appendFile } from 'node:fs/promises'
import { delivered, provide, streamHandler, type Sink } from 'millrace'
import { orders, totals } from './topology'
const lines: Sink<unknown, string> = {
  prepare: ({ value }) => JSON.stringify(value),
  async deliver(items) {
    await appendFile(${JSON.stringify(join(directory, 'totals'))}, items.map((item) => item + '\\n').join(''))
    return items.map(() => delivered)
  },
}
export const handler = streamHandler(orders, { sinks: [provide(totals, lines)] })
`
