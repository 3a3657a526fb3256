import { NodeHttpHandler } from '@smithy/node-http-handler'

/** Where an AWS client finds its service. */
export interface ClientOptions {
  /** Such as `http://127.0.0.1:4566` for an emulator. @default the service's own endpoint in the region */
  readonly endpoint?: string
  /** @default what the SDK finds in the environment */
  readonly region?: string
}

/**
 * What all our clients are made with: a single attempt per call, as the sinks know the order and the deadline and retry
 * by themselves; HTTP/1.1 with connections kept alive, as emulators speak nothing else and the services speak both; and
 * a limit of 5,000 ms per request, so that a lost answer does not outlive the invocation.
 */
export function clientSettings({ endpoint, region }: ClientOptions) {
  return {
    maxAttempts: 1,
    requestHandler: new NodeHttpHandler({
      connectionTimeout: 1_000,
      requestTimeout: 5_000,
      throwOnRequestTimeout: true,
    }),
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
  }
}
