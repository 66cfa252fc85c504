// Builds the service as a package into packages/server/dist: its source without types, because Node.js does not strip types under node_modules,
// with the built dashboard and documentation. The folders are laid out as in the repository, so that files located by a relative path
// are found there, too. Nothing is bundled: threads and processes are started from files, and stack traces show the source's file names.

import { hash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { INTEGRATIONS, WAREHOUSE } from '../packages/server/src/installation/integrations-package.ts'
import { type Lockfile, subsetOf } from '../packages/server/src/installation/lockfile-subset.ts'
import { buildDashboard } from './build-dashboard.ts'
import { buildDocs } from './build-docs.ts'
import { compileSources } from './compile-sources.ts'
import { tarballOf } from './optional-package.ts'

const root = join(import.meta.dirname, '..')
const home = join(root, 'packages', 'server')
/** Built sites, with their path in the repository and in the package. */
export const SITES = ['packages/dashboard/dist', 'docs/.vitepress/dist']

const ENTRY = `#!/usr/bin/env node
// The command \`switchyard\`. The version of Node.js is checked before anything is loaded that an old version does not support.
const [major] = process.versions.node.split('.')
if (Number(major) < 24) {
  console.error(\`Switchyard's service needs Node.js 24 or later; this is \${process.version}.\`)
  process.exit(1)
}
await import('../packages/server/src/cli.js')
`

/** The tarballs of the packages that are installed on demand. By default, those that `npm run build:integrations` and `npm run build:warehouse` have packed. */
export interface OptionalTarballs {
  integrations?: string
  warehouse?: string
}

/**
 * Empties the folder and builds into it. The sites are copied: the caller must have built them. Without the tarball of an optional package, the
 * service cannot install that package.
 */
export async function buildServer(dist: string, tarballs: OptionalTarballs = {}): Promise<void> {
  rmSync(dist, { recursive: true, force: true })
  await compileSources(home, join(dist, 'packages', 'server', 'src'))
  const own = readJson(join(home, 'package.json'))
  const { version, repository } = readJson(join(root, 'package.json'))
  writeJson(join(dist, 'packages', 'server', 'package.json'), { type: 'module', version })
  // What `switchyard catalog install` and `switchyard warehouse install` install, in exactly these versions. A tarball is published as it is, so that its hash
  // is the one that is recorded here.
  const { overrides } = readJson(join(root, 'package.json'))
  const locked = readJson(join(root, 'package-lock.json')) as unknown as Lockfile
  for (const { workspace, recorded } of [INTEGRATIONS, WAREHOUSE]) {
    const lockfile = subsetOf(locked, `packages/${workspace}`, { name: workspace })
    const packed = tarballs[workspace as keyof OptionalTarballs] ?? tarballOf(workspace, String(version))
    const integrity = existsSync(packed) ? `sha512-${hash('sha512', readFileSync(packed), 'base64')}` : undefined
    writeJson(join(dist, 'packages', 'server', recorded), { overrides, lockfile, integrity })
  }
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
    // The package is a program, so it exports nothing.
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
