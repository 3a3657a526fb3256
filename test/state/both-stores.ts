import { MemoryStateStore } from '../../lib/state/memory-store.ts'
import type { StateStore } from '../../lib/state/state-store.ts'
import { VirtualClock } from '../../lib/testing/virtual-clock.ts'
import { StateTable } from '../aws/state-table/state-table.ts'

/** Empty stores by name, for `describe.each`. */
export const bothStores: [name: string, make: () => StateStore][] = [
  ['memory', () => new MemoryStateStore({ stage: 'by-key', clock: new VirtualClock() })],
  ['DynamoDB', () => new StateTable().store()],
]
