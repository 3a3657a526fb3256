import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Annotations, Match } from 'aws-cdk-lib/assertions'
import type { TopologyLock } from '../../lib/plan/lock.ts'
import { lockOf } from '../../lib/plan/lock.ts'
import { lockText } from '../../lib/plan/lock-file.ts'
import { plan } from '../../lib/plan/plan.ts'
import { shop } from './fixtures/topology.ts'
import { newStack, shopIn } from './world.ts'

describe('the lock file at synth', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-lock-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  /** Synthesises the shop against a file that records it as `change` makes it; the warnings. */
  function synthesised(change: (lock: TopologyLock) => TopologyLock, name = shop().app.name): readonly unknown[] {
    const lock = join(folder, 'shop.lock.json')
    writeFileSync(lock, lockText(new Map([[name, { file: 'shop.ts', ...change(lockOf(plan(shop().app))) }]])))
    return warningsOf(lock)
  }

  function warningsOf(lock?: string): readonly unknown[] {
    const stack = newStack()
    shopIn(stack, () => (lock === undefined ? {} : { lock }))
    return Annotations.fromStack(stack)
      .findWarning('/Test/Shop', Match.stringLikeRegexp('millrace:lock'))
      .map(({ entry }) => entry.data)
  }

  it('is content with what is recorded', () => {
    expect(synthesised((lock) => lock)).toEqual([])
  })

  it('warns where there is none, and says what to run', () => {
    expect(warningsOf(join(folder, 'none.json'))).toEqual([
      expect.stringContaining('run `millrace lock TOPOLOGY --lock '),
    ])
    expect(warningsOf()).toEqual([expect.stringContaining('run `millrace lock TOPOLOGY`')])
  })

  it('warns where it does not know the topology, or not all of it', () => {
    expect(synthesised((lock) => lock, 'another')).toEqual([expect.stringContaining('does not know topology "shop')])
    expect(synthesised((lock) => ({ ...lock, sinks: {} }))).toEqual([
      expect.stringContaining('does not know all that topology "shop'),
    ])
  })

  it('refuses, with every name and remedy, what would lose or misread something', () => {
    const gone = (lock: TopologyLock): TopologyLock => ({
      sinks: { ...lock.sinks, receipts: {} },
      stages: { ...lock.stages, returns: { kind: 'source' } },
    })
    expect(() => synthesised(gone)).toThrow(expect.objectContaining({ name: 'ConfigurationError' }))
    expect(() => synthesised(gone)).toThrow(
      /stage "returns" is gone: .*\n- sink "receipts" is gone: .*`millrace drain`/,
    )
  })

  it('refuses a file that is none', () => {
    const lock = join(folder, 'broken.json')
    writeFileSync(lock, '<<<<<<<')
    expect(() => warningsOf(lock)).toThrow(`${lock} is not JSON`)
  })
})
