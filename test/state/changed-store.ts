import type { StateStore } from '../../lib/state/state-store.ts'

/** The store with some of its calls replaced: what a simulator, or a broken store, is made of. */
export function changedStore(store: StateStore, changes: Partial<StateStore>): StateStore {
  return {
    readProgress: (...args) => store.readProgress(...args),
    writeProgress: (...args) => store.writeProgress(...args),
    readKeys: (...args) => store.readKeys(...args),
    readEntries: (...args) => store.readEntries(...args),
    listEntries: (...args) => store.listEntries(...args),
    commit: (...args) => store.commit(...args),
    readManifest: (...args) => store.readManifest(...args),
    writeManifest: (...args) => store.writeManifest(...args),
    replaceManifest: (...args) => store.replaceManifest(...args),
    putDue: (...args) => store.putDue(...args),
    readDue: (...args) => store.readDue(...args),
    deleteDue: (...args) => store.deleteDue(...args),
    ...changes,
  }
}
