// Installs the dependencies of the clone and its pinned runtime, if they are missing, incomplete or out of date. Plain JavaScript for any
// Node.js from 18, because it runs before anything is installed.
//
// npm works in a folder of its own, and its result is moved into place when it is complete. So an installation can be killed at any moment, the
// runtime that runs this script is not deleted under it, and a service that runs in the clone keeps its packages until the new ones are there.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const modules = join(root, 'node_modules')
const lockfile = join(root, 'package-lock.json')
/** Contains the hash of the lockfile, the set of packages, and whether there is no pinned runtime for this platform. Written last. */
const stampFile = join(modules, '.switchyard-installed')
/** npm's own list of what it installed, which it writes last. */
const LIST = '.package-lock.json'
const work = join(root, 'dist', 'install')
const turnFile = join(work, 'lock')

/** The workspaces that the service, its dashboard and its documentation need, without tests, tools and what is installed on demand. */
const SERVICE = ['packages/server', 'packages/dashboard', 'docs']
/** Workspaces that are installed on demand, each with the dependency by which an installation is recognized. */
const ON_DEMAND = { 'packages/integrations': '@segment/action-destinations', 'packages/warehouse': 'hyparquet-writer' }

const TURN_POLL_MS = 200
/** The id of a process that was killed may be in use by another one. Two installations at once do no harm: the second replaces the first. */
const TURN_EXPIRES_MS = 10 * 60_000

const [major, minor] = process.versions.node.split('.').map(Number)
const isRecent = major > 24 || (major === 24 && minor >= 2)

class InstallProblem extends Error {}

/** Returns the path of the runtime. `needed` is `service` or `all`. Exits if the installation fails. */
export function ensureInstalled(needed) {
  try {
    if (!isComplete(needed)) install(needed)
    return findRuntime(needed)
  } catch (error) {
    if (!(error instanceof InstallProblem)) throw error
    console.error(error.message)
    process.exit(1)
  }
}

/** Every package is checked, because a stamp stays when somebody deletes a package. It takes 10 ms. */
function isComplete(needed) {
  const list = readPackages(join(modules, LIST))
  if (list === null) return false
  // A recent Node.js does not need the pinned runtime. For another, npm leaves it out of the list if it could not be fetched.
  if (!isRecent && !fs.existsSync(join(modules, 'node', 'package.json'))) return false
  for (const [place, { link }] of Object.entries(list)) {
    if (link || !place.includes('node_modules/') || place === 'node_modules/node') continue
    if (!fs.existsSync(join(root, place, 'package.json'))) return false
  }
  const { hash, set } = readStamp()
  if (hash === lockfileHash() && (set === 'all' || set === needed)) return true
  return isInstalledByHand(needed, list)
}

// With `npm ci`, by a person or in a layer of an image. npm's list has the same content as the lockfile if everything was installed. For the service it is
// enough that the list is newer. Nothing else depends on file times, because those of copies and checkouts are not reliable.
function isInstalledByHand(needed, installed) {
  if (needed === 'service' && fs.statSync(join(modules, LIST)).mtimeMs >= fs.statSync(lockfile).mtimeMs) return true
  return Object.entries(readPackages(lockfile) ?? {}).every(([place, { version, integrity, optional, link }]) => {
    if (link || !place.includes('node_modules/')) return true
    const found = installed[place]
    return found === undefined ? optional === true : found.version === version && found.integrity === integrity
  })
}

function install(needed) {
  takeTurn()
  try {
    // Another command may have installed while this one waited.
    if (isComplete(needed)) return
    removeLeftovers()
    const staging = join(work, String(process.pid))
    // What was installed for tests is needed again after an update.
    const set = readStamp().set === 'all' ? 'all' : needed
    copyManifests(staging)
    runNpm(staging, set)
    const hasRuntime = reuseRuntime(staging) || fetchRuntime(join(staging, 'node_modules'))
    putInPlace(staging)
    // Without a runtime, findRuntime tries once more, and then says what to do. The packages need not be installed again.
    if (hasRuntime) writeStamp(set, hasRuntime)
  } catch (error) {
    // The turn of this process has expired, and another one has moved the folders.
    if (error instanceof InstallProblem || !['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error
    if (isComplete(needed)) return
    throw new InstallProblem(
      `The dependencies of this clone cannot be installed: ${error.message}. Another process may have installed at the same time. Run this again.`,
    )
  } finally {
    removeLeftovers()
    releaseTurn()
  }
}

/** npm needs the manifests of all workspaces, and links those of their programs that exist. */
function copyManifests(staging) {
  for (const folder of workspaceFolders()) {
    fs.mkdirSync(join(staging, folder), { recursive: true })
    fs.copyFileSync(join(root, folder, 'package.json'), join(staging, folder, 'package.json'))
    const bin = join(root, folder, 'bin')
    if (folder !== '' && fs.existsSync(bin)) fs.cpSync(bin, join(staging, folder, 'bin'), { recursive: true })
  }
  for (const name of ['package-lock.json', '.npmrc']) fs.copyFileSync(join(root, name), join(staging, name))
}

function runNpm(staging, set) {
  const onDemand = Object.keys(ON_DEMAND).filter((path) =>
    [root, join(root, path)].some((folder) => fs.existsSync(join(folder, 'node_modules', ON_DEMAND[path]))),
  )
  const workspaces = [...SERVICE, ...onDemand].map((path) => `--workspace=${path}`)
  const chosen = set === 'all' ? ['--include=dev'] : [...workspaces, '--include-workspace-root', '--omit=dev']
  console.error(`Installing ${set === 'all' ? 'all dependencies' : 'the dependencies of the service'} (npm ci) …`)
  const npm = npmCommand()
  // No install script is needed but that of the pinned runtime, which fetchRuntime runs. Some would compile optional addons.
  const done = spawnSync(npm.file, [...npm.args, 'ci', ...chosen, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: staging,
    stdio: ['ignore', 2, 2],
  })
  if (done.status === 0) return
  const reason = done.error === undefined ? 'see the output above' : done.error.message
  throw new InstallProblem(
    `npm ci failed: ${reason}. The first start needs access to the npm registry; later starts download nothing. What was installed before is unchanged.`,
  )
}

function npmCommand() {
  const cli = process.env.npm_execpath
  // Other package managers set this variable, too.
  if (cli && /npm-cli\.c?js$/.test(cli) && fs.existsSync(cli)) return { file: process.execPath, args: [cli] }
  return { file: process.platform === 'win32' ? 'npm.cmd' : 'npm', args: [] }
}

/** The root's packages come last, because its list says that all are there. */
function putInPlace(staging) {
  const [own, ...others] = workspaceFolders()
  for (const folder of [...others, own]) {
    const made = join(staging, folder, 'node_modules')
    const target = join(root, folder, 'node_modules')
    try {
      if (fs.existsSync(target)) fs.renameSync(target, join(staging, folder, 'replaced'))
      if (fs.existsSync(made)) fs.renameSync(made, target)
    } catch (error) {
      if (error.code !== 'EBUSY' && error.code !== 'EXDEV') throw error
      // It is a mounted folder, as in some development containers.
      for (const name of fs.readdirSync(target)) fs.rmSync(join(target, name), { recursive: true, force: true })
      if (!fs.existsSync(made)) continue
      const list = join(made, LIST)
      fs.cpSync(made, target, { recursive: true, verbatimSymlinks: true, filter: (path) => path !== list })
      if (fs.existsSync(list)) fs.copyFileSync(list, join(target, LIST))
    }
  }
}

/** The root, which is `''`, is the first. */
function workspaceFolders() {
  const places = Object.keys(readPackages(lockfile) ?? {}).filter((place) => !place.includes('node_modules/'))
  return places.filter((place) => fs.existsSync(join(root, place, 'package.json')))
}

// The registry package `node` downloads its binary in an install script, which is run here. There is no binary for musl, and a release may lack one
// for another platform: so it is an optional dependency, and without it the Node.js that runs this script is used.
function findRuntime(needed) {
  const stamp = readStamp()
  const isStamped = stamp.hash === lockfileHash()
  const set = isStamped && stamp.set === 'all' ? 'all' : needed
  const pinned = pinnedIn(modules)
  const isFound = runs(pinned)
  // A start with a recent Node.js does not try again what has failed once; one with an older Node.js does.
  const isGivenUp = isRecent && isStamped && !stamp.hasRuntime
  const hasRuntime = isFound || (!isGivenUp && fetchRuntime(modules))
  if (!hasRuntime && !isRecent)
    throw new InstallProblem(
      `The pinned Node.js runtime could not be fetched from the npm registry, or does not run on ${process.platform}-${process.arch}, and this Node.js is ${process.version}. ` +
        'Check the access to the registry and run this again, or install Node.js 24.2 or later.',
    )
  if (!isStamped || stamp.set !== set || stamp.hasRuntime !== hasRuntime) writeStamp(set, hasRuntime)
  return hasRuntime ? pinned : process.execPath
}

/** Whether it works afterwards. What a fetch that was killed left behind is removed first: npm would take it for installed. */
function fetchRuntime(folder) {
  const home = join(folder, 'node')
  if (!fs.existsSync(home)) return false
  console.error('Fetching the pinned Node.js runtime …')
  try {
    for (const name of ['bin', 'node_modules']) fs.rmSync(join(home, name), { recursive: true, force: true })
  } catch {
    // The clone is read-only, or belongs to another user.
    return false
  }
  spawnSync(process.execPath, ['installArchSpecificPackage.js'], { cwd: home, stdio: ['ignore', 2, 2] })
  return linkRuntime(folder)
}

/** The one in the clone, if its version is the wanted one: nothing is downloaded when tests are installed after the service. */
function reuseRuntime(staging) {
  const home = join(staging, 'node_modules', 'node')
  const manifest = join(home, 'package.json')
  if (!fs.existsSync(manifest)) return false
  const { version } = JSON.parse(fs.readFileSync(manifest, 'utf8'))
  const pinned = pinnedIn(modules)
  if (!fs.existsSync(pinned) || spawnSync(pinned, ['--version'], { encoding: 'utf8' }).stdout?.trim() !== `v${version}`) return false
  fs.mkdirSync(join(home, 'bin'), { recursive: true })
  try {
    fs.linkSync(pinned, pinnedIn(join(staging, 'node_modules')))
  } catch {
    // Another file system, or one without hard links.
    fs.copyFileSync(pinned, pinnedIn(join(staging, 'node_modules')))
  }
  return linkRuntime(join(staging, 'node_modules'))
}

/** npm links the programs of packages, but only those that exist when it installs. */
function linkRuntime(folder) {
  if (!runs(pinnedIn(folder))) return false
  try {
    fs.mkdirSync(join(folder, '.bin'), { recursive: true })
    fs.symlinkSync(join('..', 'node', 'bin', 'node'), join(folder, '.bin', 'node'))
  } catch {
    // It is linked, or this is Windows, where links need a permission.
  }
  return true
}

function pinnedIn(folder) {
  return join(folder, 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
}

function runs(file) {
  return fs.existsSync(file) && spawnSync(file, ['--version'], { stdio: 'ignore' }).status === 0
}

function readStamp() {
  const text = fs.existsSync(stampFile) ? fs.readFileSync(stampFile, 'utf8') : ''
  const [, hash, set, without] = /^([\da-f]{64}) (service|all)( without-runtime)?$/.exec(text) ?? []
  return { hash, set, hasRuntime: without === undefined }
}

function writeStamp(set, hasRuntime) {
  try {
    fs.writeFileSync(stampFile, `${lockfileHash()} ${set}${hasRuntime ? '' : ' without-runtime'}`)
  } catch {
    // The clone is read-only, or belongs to another user. The next start checks again.
  }
}

function lockfileHash() {
  return createHash('sha256').update(fs.readFileSync(lockfile)).digest('hex')
}

/** Of a lockfile; null if there is none, or if it was cut off. */
function readPackages(file) {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8')).packages ?? null
  } catch {
    return null
  }
}

// One installation at a time in a clone. The file contains the id of the process that installs; a process that is killed leaves it behind.
function takeTurn() {
  const own = join(work, `turn-${process.pid}`)
  try {
    fs.mkdirSync(work, { recursive: true })
    fs.writeFileSync(own, String(process.pid))
  } catch (error) {
    throw new InstallProblem(
      `The dependencies of this clone are missing, incomplete or out of date, and they cannot be installed: ${error.message}. ` +
        `Run this once as a user who can write to ${root}.`,
    )
  }
  let hasTold = false
  while (!createTurnFile(own)) {
    const holder = holderOf(turnFile)
    if (holder === null) removeStaleTurn()
    else {
      if (!hasTold && holder > 0) console.error(`Process ${holder} is installing the dependencies of this clone. Waiting for it …`)
      hasTold = holder > 0
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TURN_POLL_MS)
    }
  }
  fs.rmSync(own, { force: true })
}

/** Returns false if another process was first. */
function createTurnFile(from) {
  try {
    // A link is there with its content or not at all.
    fs.linkSync(from, turnFile)
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
  }
  try {
    // The file system has no hard links. For a moment, the copy is empty: see holderOf.
    fs.copyFileSync(from, turnFile, fs.constants.COPYFILE_EXCL)
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw new InstallProblem(`The dependencies of this clone cannot be installed: ${error.message}.`)
  }
}

/** Another process may have taken over, if this one took too long. */
function releaseTurn() {
  try {
    if (fs.readFileSync(turnFile, 'utf8') === String(process.pid)) fs.rmSync(turnFile, { force: true })
  } catch {
    // It is gone.
  }
}

/** Another process may have replaced the file since it was read, so it is moved away before it is judged, and put back if it is in use. */
function removeStaleTurn() {
  const moved = join(work, `stale-${process.pid}`)
  try {
    fs.renameSync(turnFile, moved)
  } catch {
    // Another process removed it.
    return
  }
  if (holderOf(moved) !== null) createTurnFile(moved)
  fs.rmSync(moved, { force: true })
}

/** The process that installs; null if it has ended, and 0 if its file has just been created and is still empty. */
function holderOf(file) {
  try {
    const text = fs.readFileSync(file, 'utf8')
    const ageMs = Date.now() - fs.statSync(file).mtimeMs
    if (text === '') return ageMs < 10 * TURN_POLL_MS ? 0 : null
    return isAlive(Number(text)) && ageMs < TURN_EXPIRES_MS ? Number(text) : null
  } catch {
    // It was released at this moment.
    return null
  }
}

/** Another process than this one. */
function isAlive(pid) {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    // In a container whose first process does not reap others, one that was killed stays as a zombie.
    return !/^\d+ \(.*\) Z /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch (error) {
    // There is no /proc on macOS.
    return error.code === 'EPERM' || error.code === 'ENOENT'
  }
}

/** Of this process, and of installations that were killed. The npm of one may still write: then its folder is removed by the next installation. */
function removeLeftovers() {
  for (const name of fs.readdirSync(work)) {
    const [, pid] = /^(?:turn-|stale-)?(\d+)$/.exec(name) ?? []
    if (pid === undefined || isAlive(Number(pid))) continue
    try {
      fs.rmSync(join(work, name), { recursive: true, force: true })
    } catch {
      // Not now.
    }
  }
}
