import { EventEmitter } from 'node:events'
import { interruption } from '../../../bin/cli/interruption.ts'

function program() {
  const emitter = new EventEmitter()
  const exits: number[] = []
  let nowMs = 0
  let firsts = 0
  const signal = interruption(
    { on: (name, listener) => emitter.on(name, listener), exit: (code) => void exits.push(code) },
    () => nowMs,
    () => {
      firsts += 1
    },
  )
  return {
    exits,
    signal,
    firsts: () => firsts,
    receive(name: 'SIGINT' | 'SIGTERM', atMs: number) {
      nowMs = atMs
      emitter.emit(name)
    },
  }
}

test('the first Ctrl-C asks for a clean end, and the copy that npm sends is the same key press', () => {
  const run = program()
  run.receive('SIGINT', 0)
  run.receive('SIGINT', 20)
  expect([run.signal.aborted, run.firsts(), run.exits]).toEqual([true, 1, []])
})

test('a second Ctrl-C ends the process at once', () => {
  const run = program()
  run.receive('SIGINT', 0)
  run.receive('SIGINT', 900)
  expect(run.exits).toEqual([130])
})

test('SIGTERM asks for a clean end, and Ctrl-C may still insist', () => {
  const run = program()
  run.receive('SIGTERM', 0)
  run.receive('SIGTERM', 900)
  expect([run.signal.aborted, run.firsts(), run.exits]).toEqual([true, 1, []])
  run.receive('SIGINT', 1_000)
  expect(run.exits).toEqual([130])
})
