#!/usr/bin/env node
// Entry of every npm script. Plain JavaScript for any Node.js from 18, because it runs before anything is installed:
// it installs what is missing (install.mjs), then starts the pinned runtime, which runs TypeScript without a build step.
import { spawn, spawnSync } from 'node:child_process'
import { constants, setPriority } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ensureInstalled } from './install.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const modules = join(root, 'node_modules')

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

if (Number(process.versions.node.split('.')[0]) < 18) {
  console.error(
    `Switchyard needs Node.js 18 or later to start; this is ${process.version}. Install a newer version and try again; Switchyard then installs its own runtime.`,
  )
  process.exit(1)
}

const runtime = ensureInstalled(['packages/server/src/cli.ts', 'scripts/demo/demo.ts'].includes(script) ? 'service' : 'all')
// The service serves the built dashboard. This costs little if nothing has changed.
const isService = script.endsWith('server/src/cli.ts') && isServing(args)
if (isService) spawnSync(runtime, [join(root, 'scripts', 'build-dashboard.ts'), '--brief'], { stdio: ['ignore', 2, 2] })

const child = spawn(runtime, [...flags, join(root, script), ...args], {
  stdio: 'inherit',
  env: {
    // From the second run on, no thread of the service needs the compiler of TypeScript: 35 MB less memory, and half the time to start.
    NODE_COMPILE_CACHE: join(modules, '.cache', 'switchyard-compiled'),
    // glibc otherwise keeps a separate pool of memory for each thread, and none of them returns what another one could use.
    MALLOC_ARENA_MAX: '2',
    ...process.env,
    PATH: `${join(modules, '.bin')}${process.platform === 'win32' ? ';' : ':'}${process.env.PATH ?? ''}`,
  },
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
