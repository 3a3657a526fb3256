/** What docs/stream-application.md says is what there is. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { App, Stack } from 'aws-cdk-lib'
import { Vpc } from 'aws-cdk-lib/aws-ec2'
import { Key } from 'aws-cdk-lib/aws-kms'
import { LayerVersion } from 'aws-cdk-lib/aws-lambda'
import { Topic } from 'aws-cdk-lib/aws-sns'
import { Queue } from 'aws-cdk-lib/aws-sqs'
import { tunedApplication } from './fixtures/tuned-application.ts'
import { newStream } from './world.ts'

const fileOf = (path: string) => readFileSync(join(__dirname, '../..', path), 'utf8')
const page = fileOf('docs/stream-application.md')

/** The example as a stack of an account that is known. */
function example() {
  const app = new App({ context: { 'aws:cdk:bundling-stacks': [] } })
  const stack = new Stack(app, 'Test', { env: { account: '111122223333', region: 'eu-west-1' } })
  const application = tunedApplication(stack, {
    input: newStream(stack, 'Input'),
    output: newStream(stack, 'Output'),
    operations: new Queue(stack, 'Operations'),
    pager: new Topic(stack, 'Pager'),
    vpc: new Vpc(stack, 'Vpc'),
    key: new Key(stack, 'Key'),
    tools: LayerVersion.fromLayerVersionArn(stack, 'Tools', 'arn:aws:lambda:eu-west-1:111122223333:layer:tools:3'),
  })
  return { app, application }
}

it('the example is the file that is tested', () => {
  const [, region = ''] =
    /\/\/ example\n([\s\S]*?)\n {2}\/\/ end/.exec(fileOf('test/cdk/fixtures/tuned-application.ts')) ?? []
  const [, shown] = /```ts\n([\s\S]*?)\n```/.exec(page) ?? []
  expect(shown).toBe(region.replaceAll(/^ {2}/gm, ''))
})

it('the example synthesises', () => {
  expect(() => example().app.synth()).not.toThrow()
}, 120_000)

it.each([
  ['lib/cdk/stream-application.ts', 'StreamApplicationProps'],
  ['lib/cdk/watch/watch.ts', 'WatchProps'],
  ['lib/cdk/stage-settings.ts', 'StageProps'],
  ['lib/cdk/announcer.ts', 'AnnouncerProps'],
])('every property of %s %s is named', (file, type) => {
  const [, members = ''] = new RegExp(`export interface ${type}\\b[^{]*\\{([\\s\\S]*?)\\n\\}`).exec(fileOf(file)) ?? []
  const names = [...members.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, name]) => name)
  expect(names.length).toBeGreaterThan(1)
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([])
})

it('every construct that is generated has its row', () => {
  const { application } = example()
  const stage = application.stage('by-length')
  const made = [
    ...stage.node.children.map(({ node }) => `<stage>/${node.id}`),
    ...application.node.children.map(({ node }) => node.id),
  ]
  const isStage = (id: string) => application.stages.some(({ name }) => name === id)
  expect(made.filter((id) => !isStage(id) && !page.includes(`\`Lines/${id}`))).toEqual([])
})
