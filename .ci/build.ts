/**
 * Builds `dist`: `dist/esm` for `import`, `dist/cjs` for `require`, each with its declarations, and `dist/bin` for the
 * command line, which runs on `dist/esm`.
 *
 * `dist/cjs/middy.js` contains `@middy/core`, which exports only for `import`: jest in a CommonJS project could not load
 * it otherwise.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Script } from 'node:vm'
import { build, buildSync, type Plugin } from 'esbuild'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const dist = join(root, 'dist')
const cjs = join(dist, 'cjs')
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')

function compile(...options: readonly string[]): void {
  try {
    execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', ...options], { cwd: root, stdio: 'inherit' })
  } catch {
    process.exit(1)
  }
}

/** The compiler rewrites `./x.ts` to `./x.js` in code, but leaves declarations as they are. */
function rewriteDeclarations(): void {
  for (const path of globSync('**/*.d.ts', { cwd: dist })) {
    const file = join(dist, path)
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replaceAll(/((?:from|import\() ?['"]\.{1,2}\/[^'"]+)\.ts(['"])/g, '$1.js$2'))
  }
}

/** The permission notice that the MIT license of middy asks to go with each copy. */
const mit = `/*! @middy/core and @middy/util, MIT License

Copyright 2017 - 2026 will Farrell, Luciano Mammino, and Middy contributors.

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
*/`

function bundleMiddy(): void {
  buildSync({
    entryPoints: [join(dist, 'esm/middy.js')],
    outfile: join(cjs, 'middy.js'),
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node22',
    banner: { js: mit },
    allowOverwrite: true,
  })
  copyFileSync(join(root, 'node_modules/@middy/core/index.d.ts'), join(cjs, 'middy-core.d.ts'))
  const declarations = join(cjs, 'middy.d.ts')
  writeFileSync(declarations, readFileSync(declarations, 'utf8').replace("'@middy/core'", "'./middy-core.js'"))
}

/** The command line brings no copy of lib: it finds the compiled one beside itself. */
const libIsBuilt: Plugin = {
  name: 'lib-is-built',
  setup({ onResolve }) {
    onResolve({ filter: /^\..*\/lib\// }, ({ path, resolveDir }) => {
      const module = relative(join(root, 'lib'), resolve(resolveDir, path))
      return { path: `../esm/${module.replace(/\.ts$/, '.js')}`, external: true }
    })
  },
}

async function bundleCommandLine(): Promise<void> {
  await build({
    entryPoints: [join(root, 'bin/millrace.ts')],
    outfile: join(dist, 'bin/millrace.js'),
    bundle: true,
    packages: 'external',
    plugins: [libIsBuilt],
    platform: 'node',
    format: 'esm',
    target: 'node22',
  })
}

/** CommonJS has neither `import.meta` nor packages that export only for `import`: better to fail here than at a user's. */
function refuseEsmOnly(): void {
  for (const path of globSync('**/*.js', { cwd: cjs })) {
    const code = readFileSync(join(cjs, path), 'utf8')
    // Compiles without running: `import.meta` outside a module is a SyntaxError.
    new Script(`(function () {${code}\n})`, { filename: `dist/cjs/${path}` })
    if (code.includes('require("@middy/'))
      throw new Error(`dist/cjs/${path} requires middy: import lib/middy.ts instead.`)
  }
}

rmSync(dist, { recursive: true, force: true })
compile()
// Checked once, above: the same sources, written once more as CommonJS.
compile(
  '--outDir',
  'dist/cjs',
  '--module',
  'commonjs',
  '--moduleResolution',
  'bundler',
  '--verbatimModuleSyntax',
  'false',
  '--noCheck',
)
writeFileSync(join(cjs, 'package.json'), `${JSON.stringify({ type: 'commonjs' })}\n`)
// The local runner is a command, which runs as an ES module.
rmSync(join(cjs, 'local'), { recursive: true, force: true })
rewriteDeclarations()
bundleMiddy()
refuseEsmOnly()
await bundleCommandLine()
