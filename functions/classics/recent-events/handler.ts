import { streamHandler } from '../../../lib/index.ts'
import { middy } from '../../../lib/middy.ts'
import { recentEventsApp } from './topology.ts'

export const handler = middy().handler(streamHandler(recentEventsApp))
