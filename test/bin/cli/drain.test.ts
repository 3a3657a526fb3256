import { drain } from '../../../bin/cli/operate/drain.ts'
import type { Operated, OperatedStage } from '../../../bin/cli/operate/operated.ts'

/** A stage that has no partition with anything to do. */
const stage = (name: string, kind: OperatedStage['kind'], feeds: readonly string[]): OperatedStage => ({
  name,
  kind,
  bindings: {
    formatVersion: 1,
    topology: 'app',
    sources: [],
    sinks: [],
    deadLetters: { kind: 'kinesis', streamName: 'dead' },
    feeds: feeds.map((fed) => ({
      stage: fed,
      slots: 1,
      streamArn: `arn:aws:kinesis:us-east-1:000000000000:stream/${fed}`,
    })),
  },
  slots: 1,
  state: { store: { readProgress: async () => undefined } as never, tableName: name },
  lineage: { list: async () => [] } as never,
  firstWaitingMs: async () => undefined,
})

const application = (...stages: readonly OperatedStage[]) => {
  const paused = new Set<string>()
  const operated: Operated = {
    title: 'app (stack App)',
    topology: 'app',
    stages,
    flags: '--stack App',
    dynamodb: {} as never,
    inFlightMs: 0,
    note: undefined,
    mappingStates: async () => new Map(stages.map(({ name }) => [name, paused.has(name) ? 'Disabled' : 'Enabled'])),
    switchMappings: async (names) => names.forEach((name) => void paused.add(name)),
    checkRewind: async () => undefined,
    rewind: async () => [],
  }
  return { operated, paused }
}

test('where a keyed stage feeds another, draining says that it goes on sending by the clock, and how to stop it', async () => {
  const said: string[] = []
  const [visits, guests, rooms] = [
    stage('visits', 'feeding', ['by-guest']),
    stage('by-guest', 'keyed', ['by-room']),
    stage('by-room', 'keyed', []),
  ]
  const { operated, paused } = application(visits, guests, rooms)
  await drain(operated, 1_000, (line) => void said.push(line))
  expect([...paused]).toEqual(['visits'])
  expect(said).toContain(
    'Windows and timers of by-guest still come due by the clock, and are sent to the stages behind: `millrace pause --stack App --stage by-guest` where those are to go.',
  )
  const alone: string[] = []
  await drain(application(visits, rooms).operated, 1_000, (line) => void alone.push(line))
  expect(alone.join('\n')).toContain('is drained')
  expect(alone.join('\n')).not.toContain('by the clock')
})
