import { markedFiles } from './marked-files.ts'

describe('files marked in a page', () => {
  it('are the code blocks behind a marker, and no others', () => {
    const page =
      'text\n```ts\nnot this\n```\n<!-- file: a/b.ts -->\n```ts\nconst x = 1\n```\n\n<!-- file: c.ts -->\n\n```ts\ny()\n```\n'
    expect([...markedFiles(page)]).toEqual([
      ['a/b.ts', 'const x = 1\n'],
      ['c.ts', 'y()\n'],
    ])
  })

  it('begin with what the marker hides', () => {
    const page = `<!-- file: a.ts\nimport { x } from './x.ts'\n-->\n\`\`\`ts\nx()\n\`\`\`\n<!-- a remark -->\n\`\`\`ts\nno()\n\`\`\`\n`
    expect([...markedFiles(page)]).toEqual([['a.ts', "import { x } from './x.ts'\nx()\n"]])
  })
})
