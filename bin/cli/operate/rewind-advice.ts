/** What only a deployment can do: a starting position is fixed when a mapping is made, and the stack owns the mapping. */

interface Reading {
  readonly kind: 'kinesis' | 'kafka'
  /** The consumer group that the user has named; undefined where each mapping has one of its own. */
  readonly group: string | undefined
}

/** What is to be deployed so that a source, whose mapping was deleted, is read from a time on. */
export function sourceAdvice(stage: string, fromMs: number, { kind, group }: Reading): readonly string[] {
  const position = `startingPosition: new Date('${new Date(fromMs).toISOString()}')`
  const source =
    kind === 'kafka' ? `new KafkaSource(cluster, topic, { ${position} })` : `new KinesisSource(stream, { ${position} })`
  const advice = `The mapping of source "${stage}" was deleted, since Lambda fixes its starting position when it is made. Bind the source with ${source} and deploy: the changed position makes CloudFormation create the mapping anew, enabled, and nothing stands in its way. A deployment without that change leaves the source without a mapping.`
  return [advice, ...groupAdvice(group)]
}

/** A keyed stage has no starting position to be set: its mapping is reached by its resource. */
export const keyedAdvice = (stage: string, fromMs: number, group: string | undefined): readonly string[] => [
  `The mapping of stage "${stage}" was deleted, since one that goes on where it stopped would leave records out. Deploy the stack with the table, and with the mapping set to begin anew: const mapping = application.stage('${stage}').mapping.node.defaultChild as CfnEventSourceMapping; mapping.startingPosition = 'AT_TIMESTAMP'; mapping.startingPositionTimestamp = ${Math.floor(fromMs / 1_000)}. The changed position makes CloudFormation create the mapping; leave it in the stack from then on. A deployment without it leaves the stage without a mapping.`,
  ...groupAdvice(group),
]

/** What a group has committed wins over the position of a mapping, and a mapping takes its group only when it is made. */
const groupAdvice = (group: string | undefined): readonly string[] =>
  group === undefined
    ? []
    : [
        `It read as the consumer group ${group}, which was named in the stack: name another one in the same deployment, since the offsets that ${group} has committed would win over the new position.`,
      ]
