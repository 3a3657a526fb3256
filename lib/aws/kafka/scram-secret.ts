/** User and password of SASL/SCRAM, as Secrets Manager keeps them for MSK and for Lambda. */
import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { ConfigurationError, RetryableError } from '../../core/errors.ts'
import type { Credentials } from './signer.ts'

export interface ScramUser {
  readonly username: string
  readonly password: string
}

/** Reads the text of a secret by its ARN. */
export type SecretReader = (secretArn: string) => Promise<string>

export interface SecretsOptions {
  /** @default that of the service in the secret's region */
  readonly endpoint?: string
  /** @default what the SDK finds in the environment: the role of the function */
  readonly credentials?: Credentials
}

const withinMs = 5_000

/**
 * Reads secrets from Secrets Manager. The function needs `secretsmanager:GetSecretValue`, and `kms:Decrypt` of the key, as MSK takes
 * no secret under the key of the account. Throws a {@link RetryableError} where a secret cannot be read: no record is to blame.
 *
 * @see https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html
 * @example
 * const read = secretsManager()
 */
export function secretsManager(options: SecretsOptions = {}): SecretReader {
  return async (secretArn) => {
    const region = secretArn.split(':')[3]
    if (!region) throw unreadable(secretArn, 'this is no ARN of a secret')
    const client = new SecretsManagerClient({ region, ...options })
    try {
      const command = new GetSecretValueCommand({ SecretId: secretArn })
      const { SecretString } = await client.send(command, { abortSignal: AbortSignal.timeout(withinMs) })
      if (SecretString !== undefined) return SecretString
    } catch (thrown) {
      throw unreadable(secretArn, `Secrets Manager answered ${thrown instanceof Error ? thrown.name : 'nothing'}`)
    } finally {
      client.destroy()
    }
    throw unreadable(secretArn, 'it holds bytes, not text')
  }
}

const unreadable = (secretArn: string, why: string) =>
  new RetryableError(
    `the secret ${secretArn} cannot be read (${why}): check its ARN, and that the function may call GetSecretValue and decrypt it`,
    { code: 'secret-unreadable' },
  )

/** The user in a secret. Throws a {@link ConfigurationError}, which quotes nothing of it. */
export function scramUserIn(secret: string, secretArn: string): ScramUser {
  let user: Partial<ScramUser> = {}
  try {
    user = Object(JSON.parse(secret))
  } catch {
    // What is no JSON has no user either; the parser's words would quote it.
  }
  const { username, password } = user
  if (typeof username === 'string' && typeof password === 'string') return { username, password }
  throw new ConfigurationError(
    `the secret ${secretArn} holds no user of SASL/SCRAM: it is to be JSON of the form {"username":"...","password":"..."}.`,
  )
}
