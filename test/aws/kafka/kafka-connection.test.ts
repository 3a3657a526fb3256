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

test('IAM is OAUTHBEARER over TLS, with another token of its region for each connection', async () => {
  let asked = 0
  const made = connectionOf(
    { brokers: ['b-1:9098'], auth: { kind: 'iam', region: 'eu-central-1' }, tls: true },
    { ...ports, iamToken: async (region) => `${region} ${++asked}` },
  )
  expect(made).toEqual({
    bootstrapBrokers: ['b-1:9098'],
    tls: {},
    sasl: { mechanism: 'OAUTHBEARER', token: expect.any(Function) },
  })
  const token = made.sasl?.token as () => Promise<string>
  expect([await token(), await token()]).toEqual(['eu-central-1 1', 'eu-central-1 2'])
})
