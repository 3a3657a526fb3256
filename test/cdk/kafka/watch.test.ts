/** What is watched of a stage that reads a topic: how many records are left, as Lambda tells no age. */

import type { Stack } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import { KinesisSource } from '../../../lib/cdk/index.ts'
import { newStack, newStream } from '../world.ts'
import { linesIn } from './world.ts'

const dashboardOf = (stack: Stack) =>
  JSON.stringify(Object.values(Template.fromStack(stack).findResources('AWS::CloudWatch::Dashboard'))[0])

test('the alarm and the graph go by the lag of the topic, and by no age', () => {
  const stack = newStack()
  const { alarms } = linesIn(stack)
  expect(alarms?.of('lines', 'offset-lag')).toBeDefined()
  expect(alarms?.of('lines', 'iterator-age')).toBeUndefined()
  expect(alarms?.of('lines', 'stream-age')).toBeUndefined()
  Template.fromStack(stack).hasResourceProperties('AWS::CloudWatch::Alarm', {
    Namespace: 'AWS/Lambda',
    MetricName: 'OffsetLag',
    Dimensions: [{ Name: 'FunctionName' }],
    Statistic: 'Maximum',
    Threshold: 100_000,
    TreatMissingData: 'ignore',
  })
  expect(dashboardOf(stack)).toContain('OffsetLag')
  expect(dashboardOf(stack)).not.toContain('IteratorAge')
})

test('its threshold can be set, by the rate of the topic', () => {
  const stack = newStack()
  linesIn(stack, { more: { alarms: { stages: { lines: { 'offset-lag': 5_000 } } } } })
  Template.fromStack(stack).hasResourceProperties('AWS::CloudWatch::Alarm', {
    MetricName: 'OffsetLag',
    Threshold: 5_000,
  })
})

test('a stage that reads a stream has no lag of a topic', () => {
  const stack = newStack()
  const { alarms } = linesIn(stack, { source: new KinesisSource(newStream(stack, 'In')) })
  expect(alarms?.of('lines', 'offset-lag')).toBeUndefined()
  expect(alarms?.of('lines', 'iterator-age')).toBeDefined()
  expect(dashboardOf(stack)).not.toContain('OffsetLag')
})
