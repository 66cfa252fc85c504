// Builds @switchyard/integrations as a package into packages/integrations/dist/package: its compiled source with types, and the generated
// catalogue. npm ignores the overrides and lockfiles of a dependency, so the exact versions of its dependencies are in the package of the service
// (build-server.ts), whose `catalog install` installs it.

import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { thirdParty } from '../packages/server/src/installation/lockfile-subset.ts'
import { compileSources, declarations } from './compile-sources.ts'

const root = join(import.meta.dirname, '..')
const home = join(root, 'packages', 'integrations')

/** Empties the folder and builds into it. */
export async function buildIntegrations(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  const dist = join(folder, 'dist')
  await compileSources(home, dist)
  copyTypes(dist)
  const generated = spawnSync(process.execPath, [join(home, 'src', 'generate-catalog.ts')], { stdio: ['ignore', 'ignore', 2] })
  if (generated.status !== 0) throw new Error('the catalogue could not be generated')
  cpSync(join(home, 'dist', 'catalog'), join(dist, 'catalog'), { recursive: true })
  for (const [from, to] of [
    [join(home, 'README.md'), 'README.md'],
    [join(home, 'NOTICE'), 'NOTICE'],
    [join(root, 'LICENSE'), 'LICENSE'],
  ] as const)
    cpSync(from, join(folder, to))
  const own = readJson(join(home, 'package.json'))
  const { version, repository } = readJson(join(root, 'package.json'))
  const exports = own['exports'] as Record<string, string>
  const compiled = Object.entries(exports).map(([name, path]) => [name, path.replace('./src/', './dist/').replace(/\.ts$/, '.js')] as const)
  writeJson(join(folder, 'package.json'), {
    name: own['name'],
    version,
    description: own['description'],
    license: own['license'],
    ...(repository === undefined ? {} : { repository: { ...(repository as object), directory: 'packages/integrations' } }),
    keywords: own['keywords'],
    type: 'module',
    engines: own['engines'],
    exports: { ...Object.fromEntries(compiled), './package.json': './package.json' },
    files: ['dist', 'NOTICE'],
    dependencies: thirdParty(own['dependencies'] as Record<string, string>),
  })
}

/** The types of the protocol are copied, so that the package does not depend on it. */
function copyTypes(dist: string): void {
  const types = declarations()
  for (const [from, to] of [
    ['integrations', '.'],
    ['protocol', 'protocol'],
  ] as const)
    for (const file of globSync('**/*.d.ts', { cwd: join(types, from, 'src') })) {
      if (from === 'integrations' && !existsSync(join(dist, file.replace(/\.d\.ts$/, '.js')))) continue
      const up = '../'.repeat(file.split('/').length - 1) || './'
      const text = readFileSync(join(types, from, 'src', file), 'utf8').replaceAll("'@switchyard/protocol'", `'${up}protocol/index.js'`)
      mkdirSync(join(dist, to, posix.dirname(file)), { recursive: true })
      writeFileSync(join(dist, to, file), text)
    }
  rmSync(types, { recursive: true })
}

function readJson(file: string): Record<string, unknown> {
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
}

function writeJson(file: string, value: object): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)
}

if (import.meta.main) {
  const folder = join(home, 'dist', 'package')
  await buildIntegrations(folder)
  // The tarball is what is published: build-server.ts records its hash, so that `catalog install` accepts no other.
  const cli = process.env['npm_execpath']
  const [file, args] = cli !== undefined && /\.c?js$/.test(cli) ? [process.execPath, [cli]] : ['npm', []]
  const packed = spawnSync(file, [...args, 'pack', folder, '--pack-destination', join(home, 'dist')], { stdio: ['ignore', 'ignore', 2] })
  if (packed.status !== 0) throw new Error('npm could not pack the integrations')
  console.log('built and packed packages/integrations/dist/package')
}
