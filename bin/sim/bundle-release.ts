#!/usr/bin/env node
/**
 * `node bin/sim/bundle-release.ts COMMIT`: makes one file of what a run of the simulator needs of Millrace as it was in a commit, to
 * be run beside Millrace as it is. What the simulated applications do comes from here in both, so that a run mixes releases and
 * nothing else: make the file anew where one of those files changes.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { buildSync } from 'esbuild'
import { formerReleasePath, workloadHash } from './former-release.ts'

const simulator = 'lib/testing/simulator'

function bundle(commit: string): void {
  const root = mkdtempSync(join(tmpdir(), 'millrace-release-'))
  try {
    const archive = execFileSync('git', ['archive', commit, 'lib'], { maxBuffer: 256 * 1_024 * 1_024 })
    execFileSync('tar', ['x', '-C', root], { input: archive })
    rmSync(join(root, simulator), { recursive: true, force: true })
    cpSync(simulator, join(root, simulator), { recursive: true })
    const madeOf = JSON.stringify({ commit: fullName(commit), workload: workloadHash() })
    const { outputFiles } = buildSync({
      entryPoints: [join(root, simulator, 'release.ts')],
      bundle: true,
      write: false,
      platform: 'node',
      target: 'node22',
      format: 'cjs',
      minifyWhitespace: true,
      minifySyntax: true,
      legalComments: 'none',
      footer: { js: `module.exports={...module.exports,madeOf:${madeOf}};` },
    })
    const [file] = outputFiles
    const packed = gzipSync(file?.contents ?? '', { level: 9 })
    writeFileSync(formerReleasePath, packed)
    console.log(`${formerReleasePath}: ${packed.byteLength} bytes, Millrace as of ${commit}`)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

const fullName = (commit: string): string => execFileSync('git', ['rev-parse', commit], { encoding: 'utf8' }).trim()

const [commit] = process.argv.slice(2)
if (commit === undefined) {
  console.error('node bin/sim/bundle-release.ts COMMIT: name the commit of the release before this one')
  process.exitCode = 2
} else bundle(commit)
