import { streamHandler } from '../../lib/index.ts'
import { middy } from '../../lib/middy.ts'
import { mapStateApp } from './topology.ts'

export const handler = middy().handler(streamHandler(mapStateApp))
