/** Single key presses on a terminal. */

/** What is needed of `process.stdin`. */
export interface KeyInput {
  readonly isTTY?: boolean
  setRawMode?(mode: boolean): unknown
  setEncoding(encoding: 'utf8'): unknown
  on(event: 'data', listener: (text: string) => void): unknown
  off(event: 'data', listener: (text: string) => void): unknown
  resume(): unknown
  pause(): unknown
}

/** What a terminal in raw mode sends for Ctrl-C, instead of a signal. */
export const controlC = '\u0003'

/** Calls `onKey` for each key until the function that it returns is called. Without a terminal it does nothing. */
export function listenForKeys(input: KeyInput, onKey: (key: string) => void): () => void {
  if (!input.isTTY || !input.setRawMode) return () => undefined
  const listener = (text: string) => {
    for (const key of text) onKey(key)
  }
  input.setRawMode(true)
  input.setEncoding('utf8')
  input.on('data', listener)
  input.resume()
  return () => {
    input.off('data', listener)
    input.setRawMode?.(false)
    input.pause()
  }
}
