// Builds the service as a package into packages/server/dist: its source without types, because Node.js strips none under node_modules,
// with the dashboard and the documentation as they are served. The folders lie as in the repository, so that what is found by its place
// is found there, too. Nothing is bundled: threads and processes are started by file, and a stack trace names the file that one reads.

import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { buildDashboard } from './build-dashboard.ts'
import { buildDocs } from './build-docs.ts'

const root = join(import.meta.dirname, '..')
const home = join(root, 'packages', 'server')
/** What is only for tests. */
const LEFT_OUT = /\.test\.ts$|(?:^|\/)(?:fixtures|conformance)\/|(?:^|\/)conformance\.ts$/
/** What is served, where it lies in the repository and in the package. */
export const SITES = ['packages/dashboard/dist', 'docs/.vitepress/dist']

const ENTRY = `#!/usr/bin/env node
// The command \`switchyard\`. Whether this Node.js can run it is asked before anything is loaded that it may not know.
const [major] = process.versions.node.split('.')
if (Number(major) < 24) {
  console.error(\`Switchyard's service needs Node.js 24 or later; this is \${process.version}.\`)
  process.exit(1)
}
await import('../packages/server/src/cli.js')
`

/** Into the folder, which is emptied. The sites are copied as they are: whoever calls this has built them. */
export async function buildServer(dist: string): Promise<void> {
  rmSync(dist, { recursive: true, force: true })
  const files = globSync('src/**/*.ts', { cwd: home }).filter((file) => !LEFT_OUT.test(file))
  await build({
    entryPoints: files.map((file) => join(home, file)),
    outdir: join(dist, 'packages', 'server', 'src'),
    outbase: join(home, 'src'),
    bundle: false,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    legalComments: 'inline',
    logLevel: 'warning',
  })
  for (const file of files) {
    const built = join(dist, 'packages', 'server', file.replace(/\.ts$/, '.js'))
    // Imports, and files that threads are started from.
    const text = readFileSync(built, 'utf8').replaceAll(/(["'])(\.{1,2}\/[^"'\n]+)\.ts\1/g, '$1$2.js$1')
    writeFileSync(built, text)
  }
  const own = readJson(join(home, 'package.json'))
  const { version, repository } = readJson(join(root, 'package.json'))
  writeJson(join(dist, 'packages', 'server', 'package.json'), { type: 'module', version })
  mkdirSync(join(dist, 'bin'))
  writeFileSync(join(dist, 'bin', 'switchyard.js'), ENTRY, { mode: 0o755 })
  for (const site of SITES) {
    if (existsSync(join(root, site))) cpSync(join(root, site), join(dist, site), { recursive: true })
  }
  for (const [from, to] of [
    [join(home, 'README.md'), 'README.md'],
    [join(root, 'LICENSE'), 'LICENSE'],
  ] as const)
    cpSync(from, join(dist, to))
  writeJson(join(dist, 'package.json'), {
    name: own['name'],
    version,
    description: own['description'],
    license: own['license'],
    ...(repository === undefined ? {} : { repository: { ...(repository as object), directory: 'packages/server' } }),
    keywords: own['keywords'],
    type: 'module',
    engines: own['engines'],
    bin: { switchyard: 'bin/switchyard.js' },
    // It is a program: nothing in it is to be imported.
    exports: { './package.json': './package.json' },
    files: ['bin', 'packages', 'docs'],
    dependencies: own['dependencies'],
  })
}

function readJson(file: string): Record<string, unknown> {
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
}

function writeJson(file: string, value: object): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)
}

if (import.meta.main) {
  if (!buildDashboard() || !(await buildDocs())) process.exit(1)
  await buildServer(join(home, 'dist'))
  console.log('built packages/server/dist')
}
