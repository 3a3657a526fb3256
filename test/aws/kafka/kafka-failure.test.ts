import { NetworkError, ProtocolError } from '@platformatic/kafka'
import { KafkaFailure, kafkaFailureOf, kafkaPasses } from '../../../lib/aws/kafka/kafka-failure.ts'

/** As the client has it of a connection that was not to be had, for a reason that Node names. */
const ofConnection = (code: string) =>
  new NetworkError('Connection to 127.0.0.1:9098 failed.', { cause: Object.assign(new Error('by Node'), { code }) })

test.each([
  'OUT_OF_ORDER_SEQUENCE_NUMBER',
  'UNKNOWN_PRODUCER_ID',
  'INVALID_PRODUCER_EPOCH',
  'INVALID_PRODUCER_ID_MAPPING',
])('%s passes, although the client says that it cannot be tried again: the next send has another id', (name) => {
  const thrown = new ProtocolError(name)
  expect(thrown.canRetry).toBe(false)
  expect(kafkaFailureOf(thrown)).toMatchObject({ name, passes: true })
})

test.each(['NOT_ENOUGH_REPLICAS', 'NOT_LEADER_OR_FOLLOWER'])('%s passes, by the word of the client', (name) => {
  expect(kafkaFailureOf(new ProtocolError(name))).toMatchObject({ name, passes: true })
})

test.each(['TOPIC_AUTHORIZATION_FAILED', 'MESSAGE_TOO_LARGE', 'UNKNOWN_TOPIC_OR_PARTITION'])(
  '%s does not pass',
  (name) => {
    expect(kafkaFailureOf(new ProtocolError(name))).toMatchObject({ name, passes: false })
  },
)

test.each(['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT'])('a connection that was lost for %s comes again', (code) => {
  expect(kafkaFailureOf(ofConnection(code))).toMatchObject({ name: code, passes: true })
})

// The first is what a port says that does not speak TLS, and has the form of a lost connection.
test.each(['EPROTO', 'ERR_TLS_CERT_ALTNAME_INVALID', 'CERT_HAS_EXPIRED', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'])(
  'a connection that TLS refuses with %s does not come again',
  (code) => {
    expect(kafkaFailureOf(ofConnection(code))).toMatchObject({ name: code, passes: false })
  },
)

test('of several the one that does not pass decides, and all names are known', () => {
  const thrown = new AggregateError([
    new ProtocolError('NOT_ENOUGH_REPLICAS'),
    new ProtocolError('MESSAGE_TOO_LARGE'),
    ofConnection('ECONNRESET'),
  ])
  const failure = kafkaFailureOf(thrown)
  expect(failure).toMatchObject({ name: 'MESSAGE_TOO_LARGE', passes: false, cause: thrown })
  expect([...failure.names]).toEqual(['MESSAGE_TOO_LARGE', 'NOT_ENOUGH_REPLICAS', 'ECONNRESET'])
  expect(kafkaPasses(failure)).toBe(false)
  expect(kafkaFailureOf(failure)).toBe(failure)
  expect(failure).toBeInstanceOf(KafkaFailure)
})
