/** The handler file of the benchmark's application, as a user writes it. */
import { streamHandler } from '../../lib/index.ts'
import { middy } from '../../lib/middy.ts'
import { app } from './pipeline.ts'

export const handler = middy().handler(streamHandler(app))
