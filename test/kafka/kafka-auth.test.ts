import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { iamToken } from '../../lib/aws/kafka/iam-token.ts'
import { connectionOf } from '../../lib/aws/kafka/kafka-connection.ts'
import { scramUserIn, secretsManager } from '../../lib/aws/kafka/scram-secret.ts'
import { ConfigurationError, RetryableError } from '../../lib/core/errors.ts'
import type { KafkaCluster } from '../../lib/plan/stage-bindings.ts'
import { never, newTopic, producer, reader, recordsIn, secure, text, withSecureBroker } from './broker.ts'

const secretArn = 'arn:aws:secretsmanager:eu-central-1:111122223333:secret:AmazonMSK_orders'
const message = { partition: 0, key: undefined, value: Buffer.from('a') }
const credentials = async () => ({ accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret', sessionToken: 'session' })

withSecureBroker('SASL/SCRAM over TLS', () => {
  const cluster = (changes: Partial<KafkaCluster> = {}): KafkaCluster => ({
    brokers: [secure.address],
    auth: { kind: 'scram', secretArn },
    tls: { caPem: secure.caPem() },
    ...changes,
  })

  function connection(of: KafkaCluster, password = secure.password) {
    const reads: string[] = []
    const made = connectionOf(of, {
      scramUser: async (arn) => {
        reads.push(arn)
        return { username: secure.username, password }
      },
      iamToken: async () => 'none',
      nowMs: () => 0,
    })
    return { made, reads }
  }

  test.each(['SCRAM-SHA-512', 'SCRAM-SHA-256'] as const)(
    'writes and reads with %s, and reads the secret once',
    async (mechanism) => {
      const topic = await newTopic()
      const { made, reads } = connection(cluster({ auth: { kind: 'scram', secretArn, mechanism } }))
      await producer(made).send(topic, [message], never())
      expect((await recordsIn(topic, 0, reader(made))).map(({ value }) => text(value))).toEqual(['a'])
      expect(reads).toEqual([secretArn])
    },
  )

  test.each<[string, Partial<KafkaCluster>, string | undefined, string]>([
    ['a wrong password', {}, 'wrong', 'SASL_AUTHENTICATION_FAILED'],
    ['an authority that did not sign the certificate', { tls: true }, undefined, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  ])('%s is no failure that passes, and quotes no secret', async (_, changes, password, name) => {
    const topic = await newTopic()
    const { made } = connection(cluster(changes), password)
    const failure = await producer(made, { sendDeadlineMs: 5_000 })
      .send(topic, [message], never())
      .catch((thrown) => thrown)
    expect(failure).toMatchObject({ passes: false })
    expect([...failure.names]).toContain(name)
    expect(failure.message).not.toContain(secure.password)
  })

  test.each([
    [new ConfigurationError('the secret holds no user'), false],
    [new RetryableError('the secret cannot be read', { code: 'secret-unreadable' }), true],
  ])('a secret that cannot be had says so itself', async (error, passes) => {
    const made = connectionOf(cluster(), {
      scramUser: () => Promise.reject(error),
      iamToken: async () => '',
      nowMs: () => 0,
    })
    const failure = await reader(made)
      .topic('any', never())
      .catch((thrown) => thrown)
    expect(failure).toMatchObject({ name: error.code, message: error.message, passes })
  })
})

test('a secret is read again after a minute, and at once where reading it failed', async () => {
  let nowMs = 0
  let reads = 0
  const { sasl } = connectionOf(
    { brokers: ['b:1'], auth: { kind: 'scram', secretArn }, tls: true },
    {
      scramUser: async () => {
        if (++reads === 1) throw new Error('throttled')
        return { username: `user-${reads}`, password: 'p' }
      },
      iamToken: async () => '',
      nowMs: () => nowMs,
    },
  )
  const username = async () => (sasl?.username as undefined | (() => Promise<string>))?.()
  await expect(username()).rejects.toThrow('throttled')
  expect(await username()).toBe('user-2')
  nowMs = 59_999
  expect(await username()).toBe('user-2')
  nowMs = 60_000
  expect(await username()).toBe('user-3')
})

test.each(['not JSON', '"text"', '{"username":"u"}', 'null'])(
  'a secret with %s holds no user, and is not quoted',
  (secret) => {
    expect(() => scramUserIn(secret, secretArn)).toThrow(
      expect.objectContaining({ name: 'ConfigurationError', message: expect.stringContaining(secretArn) }),
    )
    expect(() => scramUserIn('{"username":"u","pass":"s3cret"}', secretArn)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('s3cret') }),
    )
  },
)

describe('Secrets Manager', () => {
  let server: Server
  const requests: { headers: NodeJS.Dict<string | string[]>; body: string }[] = []
  let answer = { status: 200, body: '{"SecretString":"the secret"}' }

  beforeAll(async () => {
    server = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      requests.push({ headers: request.headers, body })
      response.writeHead(answer.status).end(answer.body)
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  })
  afterAll(() => void server.close())

  const read = () =>
    secretsManager({ endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, credentials })(secretArn)

  test('is asked with a signature of the role', async () => {
    expect(await read()).toBe('the secret')
    expect(requests[0]?.headers).toMatchObject({
      'x-amz-target': 'secretsmanager.GetSecretValue',
      'x-amz-security-token': 'session',
      authorization: expect.stringMatching(
        /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-central-1\/secretsmanager\/aws4_request, SignedHeaders=/,
      ),
    })
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({ SecretId: secretArn })
  })

  test.each([
    ['a refusal', { status: 400, body: '{"__type":"AccessDeniedException"}' }, 'AccessDeniedException'],
    ['a secret of bytes', { status: 200, body: '{"SecretBinary":"AAEC"}' }, 'it holds bytes'],
    ['an answer that is no JSON', { status: 400, body: '<html>' }, 'Secrets Manager answered'],
  ])('%s says what to check', async (_, given, why) => {
    answer = given
    await expect(read()).rejects.toMatchObject({ code: 'secret-unreadable', message: expect.stringContaining(why) })
  })

  test('what is no ARN is not asked for', async () => {
    await expect(secretsManager()('AmazonMSK_orders')).rejects.toMatchObject({ code: 'secret-unreadable' })
  })
})

test('the token of MSK with IAM is the presigned request to connect that aws-msk-iam-sasl-signer-js 1.0.3 makes', async () => {
  const credentials = async () => ({
    accessKeyId: 'AKIDEXAMPLE',
    secretAccessKey: 'secret+/x',
    sessionToken: 'ses/s+ion=',
  })
  const token = await iamToken({ region: 'us-west-2', credentials, signingDate: new Date('2026-11-30T01:27:06Z') })
  expect(token).toMatch(/^[A-Za-z0-9_-]+$/)
  const url = new URL(Buffer.from(token, 'base64url').toString())
  expect(url.origin).toBe('https://kafka.us-west-2.amazonaws.com')
  expect(Object.fromEntries(url.searchParams)).toEqual({
    Action: 'kafka-cluster:Connect',
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': 'AKIDEXAMPLE/20261130/us-west-2/kafka-cluster/aws4_request',
    'X-Amz-Date': '20261130T012706Z',
    'X-Amz-Expires': '900',
    'X-Amz-Security-Token': 'ses/s+ion=',
    'X-Amz-Signature': '529493f8f037db38a806ff69de0f347a7e9b162e579cc48e652e7c670dc96481',
    'X-Amz-SignedHeaders': 'host',
    'User-Agent': 'millrace',
  })
})
