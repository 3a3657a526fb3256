import { LiveDisplay } from '../../../lib/local/display/live-display.ts'

const renderer = {
  block: (count: number) => [`count ${count}`, 'a line that is far too long for the terminal'],
  line: (count: number, atMs: number) => `${atMs}: ${count}`,
}

function shown(isTTY: boolean) {
  let nowMs = 0
  const written: string[] = []
  const output = { isTTY, columns: 20, write: (text: string) => written.push(text) }
  const display = new LiveDisplay<number>(output, () => nowMs, renderer)
  const at = (ms: number) => {
    nowMs = ms
  }
  return { display, written, at }
}

test('a terminal shows one block, which the next view replaces and a line that stays is put above', () => {
  const { display, written, at } = shown(true)
  display.show(() => 1)
  display.say('it stays')
  at(200)
  display.show(() => 2)
  display.show(() => 3, 'now')
  display.keep()
  display.say('below')
  expect(written).toEqual([
    'count 1\na line that is far \n',
    '\u001b[2A\u001b[0J',
    'it stays\n',
    'count 2\na line that is far \n',
    '\u001b[2A\u001b[0J',
    'count 3\na line that is far \n',
    'below\n',
  ])
})

test('elsewhere there is a line each second, and views that are not due are not even made', () => {
  const { display, written, at } = shown(false)
  display.show(() => 1)
  at(999)
  display.show(() => {
    throw new Error('not due')
  })
  at(1_000)
  display.show(() => 2)
  expect(written).toEqual(['0: 1\n', '1000: 2\n'])
})
