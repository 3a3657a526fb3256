import { parseCsv } from '../../../bin/flights/csv.ts'

describe('parseCsv', () => {
  test('reads quoted fields with commas, doubled quotes and line feeds in them', () => {
    const text = 'code,name\nDBN,"W. H. ""Bud"" Barron"\n53A,"Dr. C.P. Savage, Sr."\nX,"two\nlines"\n'
    expect(parseCsv(text)).toEqual([
      { code: 'DBN', name: 'W. H. "Bud" Barron' },
      { code: '53A', name: 'Dr. C.P. Savage, Sr.' },
      { code: 'X', name: 'two\nlines' },
    ])
  })

  test('takes CRLF, a byte-order mark, empty fields and a last line without its line feed', () => {
    expect(parseCsv('\ufeffa,b\r\n1,\r\n,2')).toEqual([
      { a: '1', b: '' },
      { a: '', b: '2' },
    ])
  })

  test.each([
    ['a,b\n1\n', 'record 1 has 1 fields, the header has 2'],
    ['a,b\n1,2\n"1,2\n', 'a quote is out of place in record 2'],
    ['a,b\n1,2"3\n', 'a quote is out of place in record 1'],
    ['', 'there is no header line'],
  ])('refuses %j', (text, message) => {
    expect(() => parseCsv(text)).toThrow(message)
  })
})
