// The clients as packages: installs them as npm would for a user, and measures their cost before the first
// call: installed size and load time. In the repository it changes only a build that is missing
// or older than its source.

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { CLIENT_NAMES, CLIENTS, type ClientName } from './clients.ts'

export interface InstalledClient {
  version: string
  /** The module that a workload imports. */
  from: string
  /** The folder from which the package name is resolved. */
  home: string
  bytes: number
  files: number
  packages: number
}

export type Installed = Record<ClientName, InstalledClient>

interface Manifest {
  version: string
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

const BENCH = import.meta.dirname
const ROOT = join(BENCH, '..', '..')

export function installClients(): Installed {
  if (!existsSync(join(BENCH, 'node_modules'))) {
    console.error('Installing the other clients (npm ci in bench/client) …')
    npm(['ci', '--prefix', BENCH], BENCH)
  }
  const ours = installOurs()
  const entries = CLIENT_NAMES.map((name) => {
    const { packageName } = CLIENTS[name]
    const home = name === 'switchyard' ? ours : BENCH
    const from = name === 'switchyard' ? pathToFileURL(join(ours, 'entry.mjs')).href : packageName
    return [name, { ...footprint(home, packageName), version: manifestOf(join(home, 'node_modules', packageName)).version, from, home }]
  })
  return Object.fromEntries(entries) as Installed
}

/** Packs and installs our build into a temporary folder, so that what is measured is what would be published. */
function installOurs(): string {
  const dist = join(ROOT, 'packages', 'node', 'dist')
  if (isStale(dist)) {
    console.error('Building the packages …')
    execFileSync(process.execPath, [join(ROOT, 'scripts', 'build.ts')], { cwd: ROOT, stdio: ['ignore', 2, 2] })
  }
  const home = mkdtempSync(join(tmpdir(), 'switchyard-bench-'))
  process.on('exit', () => rmSync(home, { recursive: true, force: true }))
  npm(['pack', dist, '--pack-destination', home], home)
  const tarballs = readdirSync(home).filter((file) => file.endsWith('.tgz'))
  npm(['install', '--prefix', home, '--offline', '--no-package-lock', ...tarballs.map((file) => join(home, file))], home)
  writeFileSync(join(home, 'entry.mjs'), `export * from '${CLIENTS.switchyard.packageName}'\n`)
  return home
}

function isStale(dist: string): boolean {
  const built = statSync(join(dist, 'package.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  return globSync('packages/{node,protocol}/src/**/*.ts', { cwd: ROOT }).some((file) => statSync(join(ROOT, file)).mtimeMs > built)
}

function npm(args: string[], cwd: string): void {
  const cli = process.env.npm_execpath
  const [file, first] = cli && /\.c?js$/.test(cli) ? [process.execPath, [cli]] : ['npm', []]
  const done = spawnSync(file, [...first, ...args, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd,
    stdio: ['ignore', 'ignore', 2],
    shell: process.platform === 'win32' && first.length === 0,
  })
  if (done.status !== 0) throw new Error(`npm ${args[0]} failed: see above`, { cause: done.error })
}

/**
 * The size of all files of a package and its dependencies, resolved as Node.js does. Computed from the installed tree instead of
 * separate installs, which would need the registry in every run; both give the same result.
 */
function footprint(home: string, packageName: string): { bytes: number; files: number; packages: number } {
  const folders = new Set<string>()
  const pending = [{ name: packageName, from: home }]
  for (const { name, from } of pending) {
    const folder = resolve(name, from, home)
    if (!folder || folders.has(folder)) continue
    folders.add(folder)
    const { dependencies, optionalDependencies } = manifestOf(folder)
    for (const dependency of Object.keys({ ...dependencies, ...optionalDependencies })) pending.push({ name: dependency, from: folder })
  }
  const sizes = [...folders].flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.slice(folder.length).includes('node_modules'))
      .map((entry) => statSync(join(entry.parentPath, entry.name)).size),
  )
  return { bytes: sizes.reduce((sum, size) => sum + size, 0), files: sizes.length, packages: folders.size }
}

/** An optional dependency may be missing: those for other platforms always are. */
function resolve(name: string, from: string, home: string): string | undefined {
  for (let at = from; at.startsWith(home); at = dirname(at)) {
    const folder = join(at, 'node_modules', name)
    if (existsSync(join(folder, 'package.json'))) return folder
  }
  return undefined
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
}

export const MODULE_SYSTEMS = ['import', 'require'] as const
export type ModuleSystem = (typeof MODULE_SYSTEMS)[number]
export type LoadTimes = Record<ModuleSystem, Record<ClientName, number[]>>

/** The milliseconds that loading adds to a new process. Each sample is compared with an empty process started just before it. */
export function measureLoadTimes(installed: Installed, samples: number): LoadTimes {
  const none = (): Record<ClientName, number[]> => ({ switchyard: [], segment: [], posthog: [], rudderstack: [] })
  const times: LoadTimes = { import: none(), require: none() }
  for (let sample = 0; sample < samples; sample += 1) {
    for (const system of MODULE_SYSTEMS) {
      for (const name of CLIENT_NAMES) {
        const empty = processMs(system, '', BENCH)
        const { packageName } = CLIENTS[name]
        const code = system === 'import' ? `import '${packageName}'` : `require('${packageName}')`
        times[system][name].push(processMs(system, code, installed[name].home) - empty)
      }
    }
  }
  return times
}

function processMs(system: ModuleSystem, code: string, cwd: string): number {
  const begun = performance.now()
  const type = `--input-type=${system === 'import' ? 'module' : 'commonjs'}`
  const { status } = spawnSync(process.execPath, [type, '--eval', code], { cwd, stdio: 'ignore', timeout: 30_000 })
  if (status !== 0) throw new Error(`loading failed: ${code}`)
  return performance.now() - begun
}
