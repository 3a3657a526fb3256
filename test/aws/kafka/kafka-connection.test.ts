import { connectionOf } from '../../../lib/aws/kafka/kafka-connection.ts'
import type { KafkaCluster } from '../../../lib/plan/stage-bindings.ts'

const cluster = (brokers: readonly string[]): KafkaCluster => ({ brokers, auth: { kind: 'none' }, tls: false })
const ports = {
  scramUser: () => Promise.reject(new Error('there is no user')),
  iamToken: () => Promise.reject(new Error('there is no token')),
  nowMs: () => 0,
}

test.each([
  [['b-1:9092', 'b-2:9092']],
  // As MSK says them, which a stack passes on as it is.
  [['b-1:9092,b-2:9092']],
])('brokers are taken one by one, and several in one text: %j', (brokers) => {
  expect(connectionOf(cluster(brokers), ports)).toEqual({ bootstrapBrokers: ['b-1:9092', 'b-2:9092'] })
})
