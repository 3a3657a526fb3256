import { Template } from 'aws-cdk-lib/assertions'
import { bind, KinesisSink, KinesisSource, StreamApplication } from '../../lib/cdk/index.ts'
import { Topology, text } from '../../lib/index.ts'
import { entry, newStack, newStream } from './world.ts'

/** Lines by their first word, counted; with another stage behind it, another source and another sink where asked. */
function idsOf(isGrown: boolean): Readonly<Record<string, string>> {
  const stack = newStack()
  const app = new Topology('words')
  const lines = app.source('lines', text())
  // Declared before what was there: an ordinal anywhere in an id would show.
  const more = isGrown ? app.source('more', text()) : undefined
  const late = isGrown ? app.sink<string>('all-lines') : undefined
  const counts = app.sink<number>('counts')
  const counted = lines
    .keyBy('by-word', (line) => line.split(' ')[0] ?? '')
    .reduce('last', (_, line) => line, { emit: 'on-update' })
  counted.map((line) => line.length).to(counts)
  if (more && late) {
    more.to(late)
    counted
      .keyBy('by-length', (line) => String(line.length))
      .reduce('longest', (_, line) => line, { emit: 'on-update' })
      .to(late)
  }
  new StreamApplication(stack, 'Words', {
    topology: app,
    entry,
    stages: { 'by-word': { provisionedConcurrency: 2 } },
    bind: [
      ...(more ? [bind(more, new KinesisSource(newStream(stack, 'More')))] : []),
      ...(late ? [bind(late, new KinesisSink(newStream(stack, 'AllLines')))] : []),
      bind(lines, new KinesisSource(newStream(stack, 'Lines'))),
      bind(counts, new KinesisSink(newStream(stack, 'Counts'))),
    ],
  })
  const resources = Template.fromStack(stack).toJSON().Resources as Record<string, { Type: string }>
  return Object.fromEntries(Object.entries(resources).map(([id, { Type }]) => [id, Type]))
}

/** Those that hold something: another id is another stream or table, and what was in the old one is no longer read. */
const holding = /Stream|Table|Queue|Bucket/

describe('logical ids', () => {
  const before = idsOf(false)

  it('follow the names, and are these: who changes one replaces a resource of every user', () => {
    expect(
      Object.keys(before)
        .filter((id) => /^Words/.test(id) && !/Alarm|Dashboard|CurrentVersion/.test(id))
        .sort(),
    ).toMatchInlineSnapshot(`
[
  "WordsAnnouncerFunctionEventInvokeConfig10AD1D9B",
  "WordsAnnouncerFunctionF5BBD0AF",
  "WordsAnnouncerLogsA0258D70",
  "WordsAnnouncerRoleDefaultPolicy41CED777",
  "WordsAnnouncerRoleE65C9469",
  "WordsAnnouncerRule5688BF05",
  "WordsAnnouncerRuleAllowEventRuleTestWordsAnnouncerFunction661821F77E63FB31",
  "WordsDeadLetterPayloadsDBCD08E4",
  "WordsDeadLetterPayloadsPolicy69B4A9EC",
  "WordsDeadLettersAFC55F58",
  "WordsDeadLettersPolicy2D05FF84",
  "WordsbywordFunction65EC4917",
  "WordsbywordLiveAC9E0DB7",
  "WordsbywordLogs2743715A",
  "WordsbywordMapping73DBD0CF",
  "WordsbywordRoleB7B1FB3A",
  "WordsbywordRoleDefaultPolicy1F37E4E1",
  "WordsbywordStream6D7FA6DB",
  "WordsbywordTable27256CD3",
  "WordslinesFunction382EB79D",
  "WordslinesLogsFB9B00F9",
  "WordslinesMapping6B35098E",
  "WordslinesRole1ED35DD5",
  "WordslinesRoleDefaultPolicyFAF879FB",
  "WordslinesTable5C3A0E32",
]
`)
  })

  it('stay when a source, a keyed stage and a sink are added', () => {
    const after = idsOf(true)
    // A version's id follows its code and its configuration, by which Lambda sees that it is a new one.
    const lasting = Object.entries(before).filter(([, type]) => type !== 'AWS::Lambda::Version')
    expect(Object.entries(after)).toEqual(expect.arrayContaining(lasting))
    const added = Object.entries(after).filter(([id, type]) => !(id in before) && holding.test(type))
    expect(added.map(([id]) => id.replace(/[0-9A-F]{8}$/, '')).sort()).toEqual([
      'AllLines',
      'More',
      'WordsbylengthStream',
      'WordsbylengthTable',
    ])
  })
})
