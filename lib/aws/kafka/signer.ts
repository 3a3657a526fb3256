/** Signatures of version 4 with the role of the function, for the one call that no client of the SDK makes. */
import { createHash, createHmac } from 'node:crypto'
import { defaultProvider } from '@aws-sdk/credential-provider-node'
import { SignatureV4 } from '@smithy/signature-v4'
import type { AwsCredentialIdentity, Checksum, SourceData } from '@smithy/types'

/** Gives the credentials of now: they change while a container lives. */
export type Credentials = () => Promise<AwsCredentialIdentity>

class Sha256 implements Checksum {
  readonly #hash: ReturnType<typeof createHash | typeof createHmac>

  constructor(secret?: SourceData) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', Buffer.from(secret as Uint8Array))
  }

  update(chunk: Uint8Array): void {
    this.#hash.update(chunk)
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest()
  }

  reset(): void {
    throw new Error('a digest is made once')
  }
}

/** A signer for one service; @default for `credentials` what the SDK finds in the environment. */
export const signerFor = (service: string, region: string, credentials: Credentials = defaultProvider()): SignatureV4 =>
  new SignatureV4({ service, region, credentials, sha256: Sha256 })
