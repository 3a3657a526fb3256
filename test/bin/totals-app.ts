import { join } from 'node:path'
import type { MillraceProject } from './millrace-project.ts'
import { handlerFile, topologyFile } from './orders-app.ts'

/** What refuses the units that it does not know: crates, in the stage that feeds; barrels, in the keyed one. */
export interface Broken {
  readonly feeding: boolean
  readonly keyed: boolean
}

const topology = ({ feeding, keyed }: Broken) => `
import { epochMs, milliseconds, TerminalError, Topology, valueState } from 'millrace'
import * as z from 'zod'
export const orders = new Topology('orders-app')
export const totals = orders.sink<{ customer: string; total: number }>('totals')
const refuse = (unit: string) => { throw new TerminalError('no price for ' + unit, { code: 'unknown-unit' }) }
const order = { customer: z.string(), unit: z.string(), count: z.number(), at: z.number(), note: z.string().optional() }
orders
  .source('orders', z.object(order), { eventTime: epochMs(({ at }) => at), outOfOrderness: milliseconds(5) })
  .map(({ note, ...order }) => (${feeding} && order.unit === 'crate' ? refuse(order.unit) : order))
  .keyBy('by-customer', ({ customer }) => customer)
  .process('total', {
    state: { total: valueState<number>() },
    step: ({ customer, unit, count }, { state }) => {
      if (${keyed} && unit === 'barrel') refuse(unit)
      const total = (state.total.get() ?? 0) + count
      state.total.set(total)
      return [{ customer, total }]
    },
  })
  .to(totals)
`

/** The sink notes each total as a line of a file. */
const handler = (file: string): string => `
import { appendFile } from 'node:fs/promises'
import { delivered, provide, streamHandler, type Sink } from 'millrace'
import { orders, totals } from './topology'
const lines: Sink<unknown, string> = {
  prepare: ({ value }) => JSON.stringify(value),
  async deliver(items) {
    await appendFile(${JSON.stringify(file)}, items.map((item) => item + '\\n').join(''))
    return items.map(() => delivered)
  },
}
export const handler = streamHandler(orders, { sinks: [provide(totals, lines)] })
`

/** The application "orders-app" of a project: it sums up orders by customer. */
export class TotalsApp {
  readonly #project: MillraceProject

  constructor(project: MillraceProject) {
    this.#project = project
  }

  writeHandler(): Promise<void> {
    return this.#project.write(handlerFile, handler(join(this.#project.directory, 'totals')))
  }

  writeTopology(broken: Broken): Promise<void> {
    return this.#project.write(topologyFile, topology(broken))
  }

  /** The last total of each customer: what the state holds. */
  async totals(): Promise<Readonly<Record<string, number>>> {
    const lines = await this.#project.lines('totals')
    return Object.fromEntries(lines.map((line) => JSON.parse(line)).map(({ customer, total }) => [customer, total]))
  }
}
