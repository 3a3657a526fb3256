import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../lib/aws/system-clock.ts'
import type { MillraceProject } from './millrace-project.ts'
import { handlerFile, topologyFile } from './orders-app.ts'

const topology = (price: string) => `
import { RetryableError, TerminalError, Topology } from 'millrace'
import * as z from 'zod'
export const orders = new Topology('orders-app')
export const priced = orders.sink<{ id: string; price: number }>('priced')
orders
  .source('orders', z.object({ id: z.string(), unit: z.string() }))
  .map(({ id, unit }) => ({ id, price: unit === 'piece' ? 1 : ${price} }))
  .to(priced)
`

/**
 * The sink applies each identity once, a file for each, and notes every delivery, so that a test sees what the identity absorbed. The
 * delivery of the number `held`, counted in one process, ends only when the test lets go.
 */
const handler = (folder: string, held: number, before: string) => `
import { existsSync } from 'node:fs'
import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { delivered, outputIdentity, provide, streamHandler, type Sink } from 'millrace'
import { orders, priced } from './topology'
const folder = ${JSON.stringify(folder)}
let deliveries = 0
const files: Sink<unknown, { identity: string; value: unknown }> = {
  prepare: ({ value, record, index }) => ({ identity: outputIdentity(record, index), value }),
  async deliver(items) {
    await mkdir(folder, { recursive: true })
    for (const { identity, value } of items) {
      await writeFile(folder + '/' + encodeURIComponent(identity), JSON.stringify(value), { flag: 'wx' }).catch(() => {})
      await appendFile(folder + '.log', identity + '\\n')
      deliveries += 1
      while (deliveries === ${held} && !existsSync(folder + '.go')) await setTimeout(20)
    }
    return items.map(() => delivered)
  },
}
const stream = streamHandler(orders, { sinks: [provide(priced, files)] })
export const handler = async (event: any, context: any) => {
  ${before}
  return stream(event, context)
}
`

/** The application "orders-app" of a project: its step refuses what it cannot price, until it is written with a price. */
export class PricedOrders {
  readonly #project: MillraceProject

  constructor(project: MillraceProject) {
    this.#project = project
  }

  /** `price` is the text of what other orders than those by the piece cost. */
  writeTopology(price: string): Promise<void> {
    return this.#project.write(topologyFile, topology(price))
  }

  /** The sink holds the delivery of the number `held` until {@link letGo}; `before` is the text of what each invocation begins with. */
  writeHandler(held = 0, before = ''): Promise<void> {
    const folder = join(this.#project.directory, 'applied')
    return this.#project.write(handlerFile, handler(folder, held, before))
  }

  letGo(): Promise<void> {
    return this.#project.write('applied.go', '')
  }

  /** What the sink holds, by the identity of each output. */
  async applied(): Promise<Record<string, unknown>> {
    const names = await readdir(join(this.#project.directory, 'applied')).catch(() => [])
    const entries = names.map(async (name) => [
      decodeURIComponent(name),
      JSON.parse(await this.#project.read(`applied/${name}`)),
    ])
    return Object.fromEntries(await Promise.all(entries))
  }

  /** The identities that the sink was given, in order. */
  deliveries(): Promise<readonly string[]> {
    return this.#project.lines('applied.log')
  }

  async deliveredAtLeast(count: number): Promise<void> {
    const endMs = systemClock.nowMs() + 90_000
    while ((await this.deliveries()).length < count) {
      if (systemClock.nowMs() > endMs) throw new Error(`the sink has not had ${count} deliveries in time`)
      await systemClock.sleep(20)
    }
  }
}
