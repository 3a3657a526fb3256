/**
 * Reads CSV as RFC 4180 has it: fields may be quoted, quotes inside them are doubled, lines end with CRLF or LF. Line feeds inside
 * quotes belong to the field.
 *
 * @returns one object per line after the header, by the header's names.
 * @throws Error naming the line, where a line has another number of fields than the header or a quote is never closed.
 * @example
 * parseCsv('code,name\nDBN,"W. H. ""Bud"" Barron"\n') // [{ code: 'DBN', name: 'W. H. "Bud" Barron' }]
 */
export function parseCsv(text: string): readonly Readonly<Record<string, string>>[] {
  const [header, ...rows] = splitCsv(text)
  if (header === undefined) throw new Error('there is no header line')
  return rows.map((fields, index) => {
    if (fields.length !== header.length) {
      throw new Error(`record ${index + 1} has ${fields.length} fields, the header has ${header.length}`)
    }
    return Object.fromEntries(header.map((name, column) => [name, fields[column] ?? '']))
  })
}

/** One field and what ends it: a comma, the line's end, or the end of the text (then empty). */
const fieldPattern = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y

function splitCsv(text: string): string[][] {
  const lines: string[][] = []
  let line: string[] = []
  let at = text.startsWith('\ufeff') ? 1 : 0
  while (at < text.length || line.length > 0) {
    fieldPattern.lastIndex = at
    const match = fieldPattern.exec(text)
    if (match === null) throw new Error(`a quote is out of place in record ${lines.length}`)
    const [whole, quoted, plain = '', end] = match
    line.push(quoted?.replaceAll('""', '"') ?? plain)
    at += whole.length
    if (end === ',') continue
    lines.push(line)
    line = []
  }
  return lines
}
