// Builds a package that the service installs on demand: its compiled source with types, and a manifest with its dependencies. npm ignores the overrides and
// lockfiles of a dependency, so the exact versions of its dependencies are in the package of the service (build-server.ts), with the hash of its tarball.

import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { thirdParty } from '../packages/server/src/installation/lockfile-subset.ts'
import { compileSources, declarations } from './compile-sources.ts'

const root = join(import.meta.dirname, '..')

export interface OptionalBuild {
  /** Its folder in `packages`. */
  workspace: string
  /** Files of that folder which are published as they are. */
  files: string[]
  /** What else belongs into `dist`, the folder with the compiled source. */
  complete?: (home: string, dist: string) => void
}

/** Empties the folder and builds into it. */
export async function buildOptionalPackage({ workspace, files, complete }: OptionalBuild, folder: string): Promise<void> {
  const home = join(root, 'packages', workspace)
  rmSync(folder, { recursive: true, force: true })
  const dist = join(folder, 'dist')
  await compileSources(home, dist)
  await carryProtocol(workspace, dist)
  complete?.(home, dist)
  for (const file of files) cpSync(join(home, file), join(folder, file))
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
  const own = readJson(join(home, 'package.json'))
  const { version, repository } = readJson(join(root, 'package.json'))
  const exports = own['exports'] as Record<string, string>
  const compiled = Object.entries(exports).map(([name, path]) => [name, path.replace('./src/', './dist/').replace(/\.ts$/, '.js')] as const)
  writeJson(join(folder, 'package.json'), {
    name: own['name'],
    version,
    description: own['description'],
    license: own['license'],
    ...(repository === undefined ? {} : { repository: { ...(repository as object), directory: `packages/${workspace}` } }),
    keywords: own['keywords'],
    type: 'module',
    engines: own['engines'],
    exports: { ...Object.fromEntries(compiled), './package.json': './package.json' },
    files: ['dist', ...files.filter((file) => file !== 'README.md')],
    dependencies: thirdParty(own['dependencies'] as Record<string, string>),
  })
}

/** The code and the types of the protocol are copied, so that the package does not depend on it. */
async function carryProtocol(workspace: string, dist: string): Promise<void> {
  const types = declarations()
  const own = globSync('**/*.js', { cwd: dist })
  const typed = own.map((file) => file.replace(/\.js$/, '.d.ts')).filter((file) => existsSync(join(types, workspace, 'src', file)))
  for (const file of typed) cpSync(join(types, workspace, 'src', file), join(dist, file))
  for (const file of globSync('**/*.d.ts', { cwd: join(types, 'protocol', 'src') })) {
    mkdirSync(join(dist, 'protocol', posix.dirname(file)), { recursive: true })
    cpSync(join(types, 'protocol', 'src', file), join(dist, 'protocol', file))
  }
  rmSync(types, { recursive: true })
  let isImported = false
  for (const file of [...own, ...typed]) {
    const text = readFileSync(join(dist, file), 'utf8')
    if (!/(["'])@switchyard\/protocol\1/.test(text)) continue
    isImported ||= file.endsWith('.js')
    const up = '../'.repeat(file.split('/').length - 1) || './'
    writeFileSync(join(dist, file), text.replaceAll(/(["'])@switchyard\/protocol\1/g, `'${up}protocol/index.js'`))
  }
  if (isImported) await compileSources(join(root, 'packages', 'protocol'), join(dist, 'protocol'))
}

/**
 * Packs `packages/{workspace}/dist/package` into the folder above it. The tarball is what is published: build-server.ts records its hash, so that the service
 * accepts no other.
 */
export function packOptionalPackage(workspace: string): void {
  const dist = join(root, 'packages', workspace, 'dist')
  const cli = process.env['npm_execpath']
  const [file, args] = cli !== undefined && /\.c?js$/.test(cli) ? [process.execPath, [cli]] : ['npm', []]
  const packed = spawnSync(file, [...args, 'pack', join(dist, 'package'), '--pack-destination', dist], { stdio: ['ignore', 'ignore', 2] })
  if (packed.status !== 0) throw new Error(`npm could not pack packages/${workspace}`)
  console.log(`built and packed packages/${workspace}/dist/package`)
}

/** Where packOptionalPackage puts it. */
export function tarballOf(workspace: string, version: string): string {
  return join(root, 'packages', workspace, 'dist', `switchyard-${workspace}-${version}.tgz`)
}

function readJson(file: string): Record<string, unknown> {
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
}

function writeJson(file: string, value: object): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)
}
