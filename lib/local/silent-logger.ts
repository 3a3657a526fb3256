import type { Logger } from '../runtime/ports.ts'

/** For whoever says itself what went wrong, such as a command: of a letter that a stream refuses, why. */
export const silent: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined }
