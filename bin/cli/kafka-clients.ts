/** Kafka clusters, as the bindings of functions say how they are reached. */
import type { GroupOffsets } from '../../lib/aws/kafka/group-offsets.ts'
import type { OpenKafka } from '../../lib/aws/kafka/open-kafka.ts'
import { systemClock } from '../../lib/aws/system-clock.ts'
import type { Closing } from '../../lib/local/closing.ts'
import { silent } from '../../lib/local/silent-logger.ts'
import type { KafkaCluster } from '../../lib/plan/stage-bindings.ts'
import { once } from './once.ts'

/** Opens the client library, which takes a moment, with the first call. It has the credentials of whoever runs the command. */
export function kafkaClients(endpoint: string | undefined, closing: Closing): () => Promise<OpenKafka> {
  return once(async () => {
    const library = await import('../../lib/aws/kafka/open-kafka.ts')
    const kafka = new library.OpenKafka(environmentAt(endpoint), { clock: systemClock, logger: silent })
    closing.defer(() => kafka.close())
    return kafka
  })
}

/** What consumer groups of a cluster have committed. */
export function groupOffsets(
  endpoint: string | undefined,
  closing: Closing,
): (cluster: KafkaCluster) => Promise<GroupOffsets> {
  return async (cluster) => {
    const [{ openGroupOffsets }, { kafkaConnections }] = await Promise.all([
      import('../../lib/aws/kafka/group-offsets.ts'),
      import('../../lib/aws/kafka/kafka-connections.ts'),
    ])
    const offsets = openGroupOffsets(kafkaConnections(environmentAt(endpoint))(cluster))
    closing.defer(() => offsets.close())
    return offsets
  }
}

const environmentAt = (endpoint: string | undefined) => ({
  ...process.env,
  ...(endpoint === undefined ? {} : { AWS_ENDPOINT_URL: endpoint }),
})
