// Installs an optional package with npm, for `switchyard catalog install`, `switchyard warehouse install` and for the dashboard. npm works in a folder of its own; the result is
// moved into place when it is complete, so an installation that was interrupted leaves nothing that looks installed, and a running service
// is not disturbed. Only one installation runs at a time: a lock that ends with its process keeps others out. Its progress is a file, because
// the process that is asked need not be the one that installs.

import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { VERSION } from '../api/version.ts'
import type { CatalogInstaller, Installation } from '../control/routes/catalog-installer.ts'
import { findPackage, INTEGRATIONS, type OptionalPackage, workspaceOf } from './integrations-package.ts'
import { type Lockfile, subsetOf } from './lockfile-subset.ts'

const DEADLINE_MS = 15 * 60_000
const POLL_MS = 300
/** As many lines of npm's output as an error quotes. */
const QUOTED_LINES = 6
/** Without install scripts and optional packages: those that there are compile addons, which no integration needs. Those of warehouses are DuckDB, one for each platform. */
const FLAGS = ['--ignore-scripts', '--omit=dev', '--omit=optional', '--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline']
/** What npm needs of the environment. Settings of the service stay here, because some are secret. */
const PASSED_ON =
  /^(PATH|HOME|USERPROFILE|APPDATA|SYSTEMROOT|TMPDIR|TEMP|TMP|LANG|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|npm_config_(registry|cache|userconfig|globalconfig|ca|cafile|proxy|https_proxy|noproxy|strict_ssl|offline|prefer_offline))$/i

export interface InstallOptions {
  /** Default: the integrations. */
  package?: OptionalPackage | undefined
  /** Where it is installed; not used in a clone. */
  folder: string
  /** A tarball of the package, as a path or URL, instead of the one in the registry. Not used in a clone. */
  from?: string | undefined
  signal?: AbortSignal | undefined
  /** Replaced by tests: where the service is, and the program that is run instead of npm. */
  serverFolder?: string | undefined
  npm?: { file: string; args: readonly string[] } | undefined
}

/** What the release wrote into the package of the service. */
interface Recorded {
  overrides: object
  lockfile: Lockfile
  /** The hash of the tarball of the package. */
  integrity?: string
}

interface Place {
  /** Holds the lock, the progress, and the files of an installation that is not complete. */
  work: string
  staging: string
  /** What is moved into place, and where. */
  made: string
  target: string
}

/** An error that the user can fix. */
export class InstallProblem extends Error {
  override name = 'InstallProblem'
}

/** The service's own: starts an installation in the background, and says how far it is. */
export class PackageInstaller implements CatalogInstaller {
  readonly #options: InstallOptions
  readonly #stopping = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(options: InstallOptions) {
    this.#options = { ...options, signal: this.#stopping.signal }
  }

  state(): Installation {
    return installationState(this.#options)
  }

  /** Does nothing if it is installed, or is being installed. */
  start(): Installation {
    const before = this.state()
    if (before.state === 'installed' || before.state === 'installing') return before
    // A failure is in the state.
    this.#running = installIntegrations(this.#options, () => {}).then(
      () => {},
      () => {},
    )
    return this.state()
  }

  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }
}

export function installationState(options: InstallOptions): Installation {
  if (findPackage(options.package ?? INTEGRATIONS, options.folder, { from: options.serverFolder }) !== null)
    return { state: 'installed', done: 0, total: 0, error: null }
  const { work } = placeOf(options)
  const { done = 0, total = 0, error = null } = (readJson(join(work, 'progress.json')) ?? {}) as Partial<Installation>
  if (existsSync(join(work, 'lock.db')) && lock(work) === null) return { state: 'installing', done, total, error: null }
  return { state: error === null ? 'missing' : 'failed', done: 0, total: 0, error }
}

/** Resolves when it is installed. Rejects with an InstallProblem. */
export async function installIntegrations(options: InstallOptions, onProgress: (done: number, total: number) => void): Promise<void> {
  const { package: { noun, setting } = INTEGRATIONS } = options
  const place = placeOf(options)
  const { work } = place
  let release: (() => void) | null
  try {
    mkdirSync(work, { recursive: true })
    release = lock(work, { keep: true })
  } catch (error) {
    throw new InstallProblem(
      `${capitalized(noun)} cannot be installed in ${work}: ${(error as Error).message}. Set ${setting} to a writable folder.`,
    )
  }
  if (release === null) throw new InstallProblem(`Another process is installing ${noun}. Wait until it has finished.`)
  const note = (progress: Partial<Installation>): void => writeFileSync(join(work, 'progress.json'), JSON.stringify(progress))
  try {
    // The npm of a process that was killed may still write to its folder, so each installation has its own.
    for (const name of readdirSync(work)) if (name.startsWith('staging-')) rmSync(join(work, name), { recursive: true, force: true })
    const total = prepare(place, options)
    const report = (done: number): void => {
      note({ done, total })
      onProgress(done, total)
    }
    report(0)
    await runNpm(place, options, () => report(Math.min(countPackages(join(place.staging, 'node_modules')), total - 1)))
    putInPlace(place)
    report(total)
  } catch (error) {
    note({ error: (error as Error).message })
    throw error
  } finally {
    rmSync(place.staging, { recursive: true, force: true })
    release()
  }
}

function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

function placeOf({ folder: given, serverFolder, package: wanted = INTEGRATIONS }: InstallOptions): Place {
  const workspace = workspaceOf(wanted, serverFolder)
  // npm runs in another folder, and would look for a relative path there.
  const folder = resolve(given)
  const work = workspace === null ? folder : join(workspace, 'dist', 'installation')
  const staging = join(work, `staging-${randomUUID()}`)
  return workspace === null
    ? { work, staging, made: staging, target: join(folder, VERSION) }
    : { work, staging, made: join(staging, 'node_modules'), target: join(workspace, 'node_modules') }
}

/** Returns the function that releases the lock; null if another process, or this one, has it. Without `keep` it is released at once. */
function lock(work: string, { keep = false } = {}): (() => void) | null {
  const database = new DatabaseSync(join(work, 'lock.db'), { timeout: keep ? 1_000 : 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch {
    database.close()
    return null
  }
  const release = (): void => database.close()
  if (!keep) release()
  return release
}

/** Writes what npm installs from: a manifest and a lockfile, because npm ignores those of a dependency. Returns the number of packages. */
function prepare({ staging }: Place, { serverFolder = import.meta.dirname, from, package: wanted = INTEGRATIONS }: InstallOptions): number {
  const { name, noun, recorded } = wanted
  const workspace = workspaceOf(wanted, serverFolder)
  const { overrides, lockfile, integrity } =
    workspace === null
      ? recordedIn(join(serverFolder, '..', '..', recorded), noun)
      : { ...inClone(join(workspace, '..', '..'), wanted), integrity: undefined }
  const { '': top = {}, ...packages } = lockfile.packages
  if (workspace === null) {
    // In a clone the package itself is there already. npm compares what it gets with this hash, as with those of the dependencies.
    if (integrity === undefined)
      throw new InstallProblem(
        `This build of the service does not contain the hash of ${name} ${VERSION}, so the package cannot be verified and is not installed. Install a released version of the service.`,
      )
    const isFile = from !== undefined && from.endsWith('.tgz') && !/^\w+:/.test(from)
    const spec = isFile ? `file:${resolve(from)}` : (from ?? VERSION)
    packages[`node_modules/${name}`] = {
      version: VERSION,
      integrity,
      ...(from === undefined ? {} : { resolved: spec }),
      dependencies: top.dependencies ?? {},
    }
    top.dependencies = { [name]: spec }
  }
  mkdirSync(staging, { recursive: true })
  const write = (name: string, value: object): void => writeFileSync(join(staging, name), JSON.stringify(value, null, 2))
  write('package.json', { name: wanted.workspace, private: true, dependencies: top.dependencies, overrides })
  write('package-lock.json', { ...lockfile, packages: { '': top, ...packages } })
  return Object.values(packages).filter((entry) => !('optional' in entry)).length
}

function recordedIn(file: string, noun: string): Recorded {
  const recorded = readJson(file) as Recorded | null
  if (recorded === null)
    throw new InstallProblem(
      `This build of the service does not know which packages belong to ${noun}, so nothing is installed. Use a clone or the image.`,
    )
  return recorded
}

function inClone(root: string, { workspace, noun }: OptionalPackage): { overrides: object | undefined; lockfile: Lockfile } {
  const whole = readJson(join(root, 'package-lock.json')) as Lockfile | null
  if (whole === null) throw new InstallProblem(`${root} has no package-lock.json, so ${noun} cannot be installed. Use a complete clone.`)
  const { overrides } = readJson(join(root, 'package.json')) as { overrides?: object }
  return { overrides, lockfile: subsetOf(whole, `packages/${workspace}`, { name: workspace }) }
}

async function runNpm(
  { staging, work }: Place,
  { signal, npm = findNpm(), package: wanted = INTEGRATIONS }: InstallOptions,
  onPoll: () => void,
): Promise<void> {
  const { noun } = wanted
  const args = [
    ...npm.args,
    'ci',
    '--prefix',
    staging,
    ...(wanted.name === '@switchyard/warehouse' ? FLAGS.filter((flag) => flag !== '--omit=optional') : FLAGS),
  ]
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => PASSED_ON.test(name)))
  if (!isWritable(env['HOME'] ?? homedir())) env['npm_config_cache'] = join(work, 'npm-cache')
  const child = spawn(npm.file, args, { cwd: staging, env, stdio: ['ignore', 'ignore', 'pipe'] })
  const stop = (): void => void child.kill('SIGTERM')
  signal?.addEventListener('abort', stop)
  if (signal?.aborted) stop()
  const deadline = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS)
  const poll = setInterval(onPoll, POLL_MS)
  try {
    const { code, output } = await ended(child, noun)
    if (signal?.aborted) throw new InstallProblem(`The installation of ${noun} was stopped. Start it again.`)
    if (code !== 0 && output.includes('EINTEGRITY'))
      throw new InstallProblem(
        `A package of ${noun} does not have the hash that was recorded when this version of the service was released, so nothing was installed. The registry may have been tampered with. npm says: ${quoted(output)}`,
      )
    if (code !== 0) throw new InstallProblem(`npm could not install ${noun}: ${quoted(output)}`)
  } finally {
    clearTimeout(deadline)
    clearInterval(poll)
    signal?.removeEventListener('abort', stop)
  }
}

function ended(child: ChildProcess, noun: string): Promise<{ code: number | null; output: string }> {
  let output = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-20_000)))
  return new Promise((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      const isMissing = error.code === 'ENOENT'
      reject(
        new InstallProblem(
          isMissing
            ? `npm was not found, and ${noun} is installed with it. Install npm, which is part of Node.js, and make sure that it is in PATH.`
            : `npm could not be started: ${error.message}`,
        ),
      )
    })
    child.once('close', (code) => resolve({ code, output }))
  })
}

/** The pinned runtime has no npm, so it is the one that started the service, the one of another Node.js here, or the one in PATH. */
function findNpm(): { file: string; args: string[] } {
  const cli = process.env['npm_execpath']
  const beside = join(dirname(process.execPath), '..', 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js')
  if (cli !== undefined && /npm-cli\.c?js$/.test(cli) && existsSync(cli)) return { file: process.execPath, args: [cli] }
  if (existsSync(beside)) return { file: process.execPath, args: [beside] }
  return { file: process.platform === 'win32' ? 'npm.cmd' : 'npm', args: [] }
}

function quoted(output: string): string {
  const lines = output.split('\n').map((line) => line.replace(/^npm (error|ERR!)\s*/, '').trim())
  const telling = lines.filter((line) => line !== '' && !line.startsWith('A complete log of this run'))
  return telling.length === 0 ? 'it ended without a message. Try again.' : telling.slice(0, QUOTED_LINES).join(' ')
}

/** npm makes all folders first and fills them afterwards. */
function countPackages(modules: string): number {
  return packageFolders(modules).reduce((count, folder) => {
    const isThere = existsSync(join(folder, 'package.json'))
    return count + (isThere ? 1 : 0) + countPackages(join(folder, 'node_modules'))
  }, 0)
}

function packageFolders(modules: string): string[] {
  const names = existsSync(modules) ? readdirSync(modules).filter((name) => !name.startsWith('.')) : []
  return names.flatMap((name) => {
    const folder = join(modules, name)
    return name.startsWith('@') ? readdirSync(folder).map((own) => join(folder, own)) : [folder]
  })
}

function putInPlace({ made, target, work }: Place): void {
  const old = join(work, 'old')
  rmSync(old, { recursive: true, force: true })
  if (existsSync(target)) renameSync(target, old)
  renameSync(made, target)
  rmSync(old, { recursive: true, force: true })
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return null
  }
}
