#!/usr/bin/env node
// Entry of every npm script. Plain JavaScript for any Node.js from 18, because it runs before anything is installed:
// it installs what is missing, then starts the pinned runtime, which runs TypeScript without a build step.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const modules = join(root, 'node_modules')
const pinned = join(modules, 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
const stampFile = join(modules, '.switchyard-installed')
/** npm's own list of what it installed. */
const listFile = join(modules, '.package-lock.json')

// Arguments before the script are options of the runtime.
const given = process.argv.slice(2)
const flags = given.slice(
  0,
  Math.max(
    0,
    given.findIndex((argument) => !argument.startsWith('-')),
  ),
)
const [script, ...args] = given.slice(flags.length)
if (!script) {
  console.error('usage: node scripts/run.mjs [runtime flags] SCRIPT.ts [arguments]')
  process.exit(2)
}

const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 18) {
  console.error(
    `Switchyard needs Node.js 18 or later to start; this is ${process.version}. Install a newer version and try again; Switchyard then installs its own runtime.`,
  )
  process.exit(1)
}

/** The workspaces that the service, its dashboard and its documentation need, without tests, tools and the integrations of the catalogue. */
const SERVICE = ['packages/server', 'packages/dashboard', 'docs']
const CATALOG = 'packages/integrations'

ensureInstalled(['packages/server/src/cli.ts', 'scripts/demo/demo.ts'].includes(script) ? 'service' : 'all')
const runtime = findRuntime()
// The service serves the built dashboard. This costs little if nothing has changed.
const isService = script.endsWith('server/src/cli.ts') && isServing(args)
if (isService) spawnSync(runtime, [join(root, 'scripts', 'build-dashboard.ts'), '--brief'], { stdio: ['ignore', 2, 2] })

const child = spawn(runtime, [...flags, join(root, script), ...args], {
  stdio: 'inherit',
  env: { ...process.env, PATH: `${join(modules, '.bin')}${process.platform === 'win32' ? ';' : ':'}${process.env.PATH ?? ''}` },
})
// Building the documentation takes longer than the dashboard, and nobody reads it in the first seconds: it is built beside the service, with lower
// priority, and served when it is ready.
const isDemo = script.endsWith('scripts/demo/demo.ts') && !args.includes('--help')
const docs = isService || isDemo ? startBehind(join(root, 'scripts', 'build-docs.ts'), '--quiet') : undefined

// A terminal sends Ctrl-C to the whole process group, so the child gets it too; a supervisor's signals reach only this process.
process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'))
process.on('SIGTERM', () => child.kill('SIGTERM'))
// A closed terminal also signals the whole group; getting the signal twice does no harm.
process.on('SIGHUP', () => child.kill('SIGHUP'))
// `npm start` puts a shell between npm and us, which ends on npm's SIGTERM without forwarding it: then this process gets a new
// parent. The signal is sent only once, because a second one means "stop at once".
if (process.env.npm_lifecycle_event) {
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    child.kill('SIGTERM')
  }, 500).unref()
}
child.on('exit', (code, signal) => {
  docs?.kill('SIGTERM')
  if (signal) {
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  } else process.exit(code ?? 1)
})

function startBehind(...command) {
  const started = spawn(runtime, command, { stdio: ['ignore', 'ignore', 2] })
  started.on('error', () => {})
  try {
    if (started.pid !== undefined) setPriority(started.pid, constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // The process has ended, or its priority may not be changed.
  }
  return started
}

function isServing(given) {
  const [first = 'serve'] = given
  return (first === 'serve' || first.startsWith('-')) && !given.includes('--help') && !given.includes('--version')
}

// The stamp has the hash of the lockfile and what was installed: `service`, or everything.
function ensureInstalled(needed) {
  const hash = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
  const [of = '', installed = of && 'all'] = existsSync(stampFile) ? readFileSync(stampFile, 'utf8').split(' ') : []
  if (of === hash && (installed === 'all' || needed === 'service')) return
  // The packages were installed in another way: manually, or in a layer of an image.
  if (of !== hash && isInstalled(needed)) return needed === 'all' ? writeStamp(`${hash} all`) : undefined
  // What was installed for tests or for the catalogue is needed again after an update.
  const set = installed === 'all' ? 'all' : needed
  const hasCatalog = [root, join(root, CATALOG)].some((folder) =>
    existsSync(join(folder, 'node_modules', '@segment', 'action-destinations')),
  )
  const workspaces = [...SERVICE, ...(hasCatalog ? [CATALOG] : [])].map((path) => `--workspace=${path}`)
  const chosen = set === 'all' ? ['--include=dev'] : [...workspaces, '--include-workspace-root', '--omit=dev']
  console.error(`Installing ${set === 'all' ? 'all dependencies' : 'the dependencies of the service'} (npm ci) …`)
  // An interrupted installation leaves neither, so the next start installs again.
  for (const file of [stampFile, listFile]) rmSync(file, { force: true })
  const npm = npmCommand()
  // No install script is needed but that of the pinned runtime, which findRuntime runs. Some would compile optional addons.
  const done = spawnSync(npm.file, [...npm.args, 'ci', ...chosen, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  })
  if (done.status !== 0) {
    console.error('npm ci failed: see the output above. The first start needs access to the npm registry; later starts download nothing.')
    process.exit(done.status ?? 1)
  }
  writeStamp(`${hash} ${set}`)
}

// npm's list has the same content as the lockfile if everything was installed. For the service it is
// enough that the list is newer. Nothing else depends on file times, because those of copies and checkouts are not reliable.
function isInstalled(needed) {
  const lockfile = join(root, 'package-lock.json')
  if (!existsSync(listFile)) return false
  if (needed === 'service' && statSync(listFile).mtimeMs >= statSync(lockfile).mtimeMs) return true
  const [wanted, installed] = [lockfile, listFile].map((file) => JSON.parse(readFileSync(file, 'utf8')).packages)
  return Object.entries(wanted).every(([place, { version, integrity, optional, link }]) => {
    if (link || !place.includes('node_modules/')) return true
    const found = installed[place]
    return found === undefined ? optional === true : found.version === version && found.integrity === integrity
  })
}

function writeStamp(stamp) {
  try {
    writeFileSync(stampFile, stamp)
  } catch {
    // The clone is read-only, or belongs to another user. The next start checks again.
  }
}

// The registry package `node` downloads its binary in an install script, which is run here. There is no binary for musl, and a release may lack one
// for another platform: so it is an optional dependency, and without it the Node.js that runs this script is used.
function findRuntime() {
  if (runs(pinned)) return pinned
  const isRecent = major > 24 || (major === 24 && minor >= 2)
  if (!existsSync(pinned) && existsSync(join(modules, 'node'))) {
    console.error('Fetching the pinned Node.js runtime …')
    spawnSync(process.execPath, ['installArchSpecificPackage.js'], { cwd: join(modules, 'node'), stdio: ['ignore', 2, 2] })
    if (runs(pinned)) return linkRuntime()
    // As npm does with an optional dependency that cannot be installed: later starts do not try again.
    if (isRecent) rmSync(join(modules, 'node'), { recursive: true, force: true })
  }
  if (isRecent) return process.execPath
  console.error(
    `The registry package "node" has no runtime for ${process.platform}-${process.arch} that works here, and this Node.js is ${process.version}. ` +
      'Install Node.js 24.2 or later and run this again with it.',
  )
  process.exit(1)
}

// npm links the programs of packages, but only those that exist when it installs.
function linkRuntime() {
  try {
    symlinkSync(join('..', 'node', 'bin', 'node'), join(modules, '.bin', 'node'))
  } catch {
    // It is linked, or this is Windows, where links need a permission.
  }
  return pinned
}

function runs(file) {
  return existsSync(file) && spawnSync(file, ['--version'], { stdio: 'ignore' }).status === 0
}

function npmCommand() {
  const cli = process.env.npm_execpath
  // Other package managers set this variable, too.
  if (cli && /npm-cli\.c?js$/.test(cli)) return { file: process.execPath, args: [cli] }
  return { file: process.platform === 'win32' ? 'npm.cmd' : 'npm', args: [] }
}
