/** The same topology with a settlement service in place of the two output streams: the sinks are provided, nothing else differs. */
import { provide, streamHandler } from '../../lib/index.ts'
import { middy } from '../../lib/middy.ts'
import { settlementSink } from './settlement.ts'
import { paymentsApp, paymentsRejected, paymentsValidated } from './topology.ts'

export const handler = middy().handler(
  streamHandler(paymentsApp, {
    sinks: [
      provide(paymentsValidated, settlementSink('/validated')),
      provide(paymentsRejected, settlementSink('/rejected')),
    ],
  }),
)
