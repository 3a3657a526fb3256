import { type Credentials, signerFor } from './signer.ts'

export interface IamTokenOptions {
  readonly region: string
  /** @default what the SDK finds in the environment: the role of the function */
  readonly credentials?: Credentials
  /** @default now */
  readonly signingDate?: Date
}

/** How long a broker takes the token, in seconds. It is used at once. */
const expiresInSeconds = 900

/**
 * What a client of MSK with IAM gives for a token of SASL/OAUTHBEARER: a presigned request to connect, in the base64 of URLs.
 * `aws-msk-iam-sasl-signer-js` makes the same, and brings the clients of STS and of single sign-on with it.
 *
 * @see https://docs.aws.amazon.com/msk/latest/developerguide/iam-access-control.html
 * @example
 * const token = await iamToken({ region: 'eu-central-1' })
 */
export async function iamToken({ region, credentials, signingDate = new Date() }: IamTokenOptions): Promise<string> {
  const hostname = `kafka.${region}.amazonaws.com`
  const { query } = await signerFor('kafka-cluster', region, credentials).presign(
    {
      method: 'GET',
      protocol: 'https:',
      hostname,
      path: '/',
      headers: { host: hostname },
      query: { Action: 'kafka-cluster:Connect' },
    },
    { expiresIn: expiresInSeconds, signingDate },
  )
  const url = new URL(`https://${hostname}/`)
  for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, String(value))
  // Not signed: it only tells who asks.
  url.searchParams.set('User-Agent', 'millrace')
  return Buffer.from(url.href).toString('base64url')
}
