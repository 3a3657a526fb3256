import { streamHandler } from '../../lib/index.ts'
import { middy } from '../../lib/middy.ts'
import { boundedStateApp } from './topology.ts'

export const handler = middy().handler(streamHandler(boundedStateApp))
