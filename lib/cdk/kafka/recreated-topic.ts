import { Annotations } from 'aws-cdk-lib'
import type { Construct } from 'constructs'
import type { StagePlan } from '../../plan/plan.ts'
import type { SinkDeclaration } from '../../topology/graph.ts'
import type { SinkConnection, SourceConnection } from '../bind.ts'
import { DynamoDbTableSink } from '../dynamodb.ts'

/**
 * Says at synth where a topic that is deleted and made again would lose outputs: a table sink remembers which offsets it took of which
 * partition of which source, and a stage without progress cannot tell that they begin anew.
 */
export function sayUnnoticed(
  scope: Construct,
  stage: StagePlan,
  source: SourceConnection,
  sinks: ReadonlyMap<SinkDeclaration, SinkConnection>,
): void {
  const [table] = [...sinks].filter(([, sink]) => sink instanceof DynamoDbTableSink)
  if (stage.kind !== 'stateless' || source.cluster === undefined || table === undefined) return
  const [{ name }] = table
  Annotations.of(scope).addInfoV2(
    'millrace:recreated-topic',
    `stage "${stage.name}" reads ${source.resource} and writes to the table of the sink "${name}", whose rows remember the offsets that they took: once the topic is deleted and made again under its name, offsets begin anew, and rows drop new records as done without a word, as the stage keeps no progress that could tell; give the source another name then, or key the stream, as a stage with progress refuses such a topic.`,
  )
}
