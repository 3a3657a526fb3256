import { streamHandler } from '../../lib/index.ts'
import { middy } from '../../lib/middy.ts'
import { visitsApp } from './topology.ts'

export const handler = middy().handler(streamHandler(visitsApp))
