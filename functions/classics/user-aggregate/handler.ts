import { streamHandler } from '../../../lib/index.ts'
import { middy } from '../../../lib/middy.ts'
import { userAggregateApp } from './topology.ts'

export const handler = middy().handler(streamHandler(userAggregateApp))
