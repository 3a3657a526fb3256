#!/usr/bin/env node
/**
 * `node test/deploy/bundle-release.ts COMMIT`: makes one file of the bookings application and its stack as they were in a commit, with
 * all of Millrace that they had then. The packages that they use are those that are installed when the file is used.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { buildSync } from 'esbuild'
import { type FormerRelease, formerReleasePath } from './former-release.ts'

function bundle(commit: string): void {
  const root = mkdtempSync(join(tmpdir(), 'millrace-release-'))
  try {
    const parts = ['lib', 'functions', 'bin/demos/demo-stacks.ts']
    const archive = execFileSync('git', ['archive', commit, ...parts], { maxBuffer: 256 * 1_024 * 1_024 })
    execFileSync('tar', ['x', '-C', root], { input: archive })
    const release: FormerRelease = {
      commit: execFileSync('git', ['rev-parse', commit], { encoding: 'utf8' }).trim(),
      handler: oneFile(root, 'functions/bookings/handler.ts'),
      stacks: oneFile(root, 'bin/demos/demo-stacks.ts'),
    }
    const packed = gzipSync(JSON.stringify(release), { level: 9 })
    writeFileSync(formerReleasePath, packed)
    console.log(`${formerReleasePath}: ${packed.byteLength} bytes, Millrace as of ${commit}`)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

function oneFile(root: string, entry: string): string {
  const { outputFiles } = buildSync({
    entryPoints: [join(root, entry)],
    bundle: true,
    write: false,
    packages: 'external',
    platform: 'node',
    target: 'node22',
    format: 'esm',
    minifyWhitespace: true,
    legalComments: 'none',
  })
  return outputFiles[0]?.text ?? ''
}

const [commit] = process.argv.slice(2)
if (commit === undefined) {
  console.error('node test/deploy/bundle-release.ts COMMIT: name the commit of the release before this one')
  process.exitCode = 2
} else bundle(commit)
