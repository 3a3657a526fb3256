import { checkKeyedTopic } from '../../../lib/aws/kafka/topic-rules.ts'
import { frameSettings, type TopicRequest } from '../../../lib/plan/topic-request.ts'

const request: TopicRequest = {
  formatVersion: 1,
  stage: 'by-driver',
  slots: 64,
  cluster: { brokers: ['b-1:9098'], auth: { kind: 'none' }, tls: false },
  topic: { prefix: 'rides-by-driver-' },
  partitions: 8,
  retentionMs: 604_800_000,
  settings: {},
  isDeletedWithStage: false,
}

/** Checks a topic that has these settings beside those of frames. */
function checked(topic: string, settings: Readonly<Record<string, string>> = {}) {
  const held = new Map(Object.entries({ ...frameSettings(request.retentionMs), ...settings }))
  return () => checkKeyedTopic(request, { topic, topicId: 'id-1' }, { id: 'id-1', partitions: 8, settings: held })
}

test('a topic of ours has the prefix and ten hexadecimal digits, and passes', () => {
  expect(checked('rides-by-driver-0123abcdef')).not.toThrow()
})

test.each([
  ['another prefix', 'frames-1700000000'],
  ['another prefix of the same length', 'rides-by-writer-1700000000'],
  ['the prefix of another stage, which this one begins with', 'rides-by-driver-late-1700000000'],
  ['a longer prefix', 'old-rides-by-driver-1700000000'],
  ['fewer digits', 'rides-by-driver-170000000'],
  ['more digits', 'rides-by-driver-17000000000'],
  ['no digits', 'rides-by-driver-'],
])('a topic with %s is none of ours: what is unread of it would be lost', (_, topic) => {
  expect(checked(topic)).toThrow(
    expect.objectContaining({
      name: 'ConfigurationError',
      code: 'topic-changed',
      message: expect.stringContaining(`stage "by-driver" reads topic "${topic}", and is to read one of its own now`),
    }),
  )
})

test.each([
  ['retention.bytes', '1000000'],
  ['retention.ms', '3600000'],
  ['cleanup.policy', 'compact'],
  ['message.timestamp.type', 'CreateTime'],
  ['max.message.bytes', '1048703'],
])('%s %s would lose frames or their order', (name, value) => {
  expect(checked('rides-by-driver-0123abcdef', { [name]: value })).toThrow(
    expect.objectContaining({
      code: 'topic-settings',
      message: expect.stringMatching(
        new RegExp(`^topic "rides-by-driver-0123abcdef" .* has ${name} ${value}: .*; set it to `),
      ),
    }),
  )
})

test('a topic that takes more than the largest frame passes', () => {
  expect(checked('rides-by-driver-0123abcdef', { 'max.message.bytes': '2097152' })).not.toThrow()
})
