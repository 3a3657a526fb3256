import { HeldQueue, type QueuedMessage } from '../../../lib/aws/dead-letters/queue.ts'

/** Reads the queue until it is empty, each message once, and gives all back, as a list of it does. */
export async function lookAtQueue(
  options: ConstructorParameters<typeof HeldQueue>[0],
): Promise<readonly QueuedMessage[]> {
  const queue = new HeldQueue(options)
  try {
    return await queue.receive()
  } finally {
    await queue.release()
  }
}
