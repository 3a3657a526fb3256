/** How errors name a key, and the stage that it belongs to where that is known: the whole of a long key would hide the rest. */
export function keyPath(key: string, stage: string | undefined): string {
  const named = JSON.stringify(key.length > 100 ? `${key.slice(0, 100)}...` : key)
  return stage === undefined ? `key ${named}` : `stage "${stage}", key ${named}`
}
