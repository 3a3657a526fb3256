/** Reads the queue of dead letters of a deployed stage. */
import { ReceiveMessageCommand } from '@aws-sdk/client-sqs'
import type { StandInClients } from '../../bin/deploy/clients.ts'
import { invariant } from '../../lib/core/errors.ts'
import type { StageBindings } from '../../lib/plan/stage-bindings.ts'

/** All letters that are in it. They stay there, and are hidden for as long as the queue says. */
export async function deadLettersOf(
  { sqs }: StandInClients,
  { deadLetters }: StageBindings,
): Promise<readonly { readonly data: Uint8Array }[]> {
  invariant(deadLetters.kind === 'sqs', 'the dead letters are in no queue')
  const letters: { readonly data: Uint8Array }[] = []
  for (;;) {
    const { Messages = [] } = await sqs.send(
      new ReceiveMessageCommand({ QueueUrl: deadLetters.queueUrl, MaxNumberOfMessages: 10 }),
    )
    if (Messages.length === 0) return letters
    letters.push(...Messages.map(({ Body = '' }) => ({ data: Buffer.from(Body) })))
  }
}
