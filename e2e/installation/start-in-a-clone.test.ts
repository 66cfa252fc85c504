// `npm start` when the dashboard or the documentation cannot be built: it prints one line with the reason for each, and the service runs. In a
// copy of the repository, because the builds are written into it.

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { asUser, own, temporaryFolders } from '../../packages/server/src/store/postgres/fixtures/postgres-programs.ts'

const repository = join(import.meta.dirname, '..', '..')
const LEFT_OUT = new Set(['node_modules', 'dist', '.git'])
const IS_ROOT = process.getuid?.() === 0

/** A clone in which everything is installed, by links, and nothing is built. Its path contains spaces and non-ASCII letters. */
function copyRepository(t: TestContext): { clone: string; data: string } {
  const work = mkdtempSync(join(temporaryFolders()[0] ?? tmpdir(), 'switchyard-clone-'))
  t.after(() => rmSync(work, { recursive: true, force: true }))
  chmodSync(work, 0o755)
  const clone = join(work, 'späte Züge 列車')
  mkdirSync(join(clone, 'node_modules'), { recursive: true })
  // With their modification times: scripts/run.mjs compares that of the lockfile to find out whether the installation is up to date.
  for (const name of ['package.json', 'package-lock.json', '.npmrc', 'tsconfig.json', 'packages', 'scripts', 'docs'])
    cpSync(join(repository, name), join(clone, name), {
      recursive: true,
      preserveTimestamps: true,
      filter: (path) => !LEFT_OUT.has(path.split('/').at(-1) ?? ''),
    })
  for (const name of readdirSync(join(repository, 'node_modules')))
    if (!['.switchyard-installed', '.cache'].includes(name))
      symlinkSync(join(repository, 'node_modules', name), join(clone, 'node_modules', name))
  symlinkSync(join(repository, 'packages', 'server', 'node_modules'), join(clone, 'packages', 'server', 'node_modules'))
  const data = join(work, 'data')
  mkdirSync(data)
  own(data)
  return { clone, data }
}

/** Starts the service as `npm start` does, and stops it when it listens and the builds have ended. */
async function start(
  clone: string,
  data: string,
  user: { uid?: number; gid?: number },
): Promise<{ stdout: string; stderr: string; page: string }> {
  const child = spawn(process.execPath, [join(clone, 'scripts', 'run.mjs'), 'packages/server/src/cli.ts'], {
    cwd: clone,
    env: {
      PATH: process.env['PATH'],
      HOME: data,
      SWITCHYARD_STORE: `sqlite:${join(data, 'switchyard.db')}`,
      SWITCHYARD_PORT: '0',
      SWITCHYARD_LOG: 'error',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...user,
  })
  const closed = new Promise((resolve) => child.once('close', resolve))
  const printed = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) child[name].setEncoding('utf8').on('data', (text: string) => (printed[name] += text))
  const until = (name: 'stdout' | 'stderr', what: RegExp): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const [, found] = what.exec(printed[name]) ?? []
        if (found !== undefined) resolve(found)
      }
      child[name].on('data', look)
      child.once('close', () => reject(new Error(`it ended: ${printed.stdout}${printed.stderr}`)))
      look()
    })
  try {
    const url = await until('stdout', /listens on (\S+)/)
    await until('stderr', /(The documentation could not be built.*)\n/)
    return { ...printed, page: await (await fetch(url)).text() }
  } finally {
    child.kill('SIGTERM')
    await closed
  }
}

function assertOneLineEach(stderr: string, reason: RegExp): void {
  assert.match(stderr, reason)
  for (const what of ['dashboard', 'documentation'])
    assert.equal(stderr.match(new RegExp(`^The ${what} could not be built: .+$`, 'gm'))?.length, 1, stderr)
  const others = stderr
    .trimEnd()
    .split('\n')
    .filter((line) => !/^(Building the dashboard|The \w+ could not be built: )/.test(line))
  assert.deepEqual(others, [])
}

test('when the dashboard cannot be built, npm start prints the reason in one line and no address of the dashboard, and the service runs', async (t) => {
  const { clone, data } = copyRepository(t)
  const broken = "throw new Error('no binary for this platform')\n"
  writeFileSync(join(clone, 'packages', 'dashboard', 'vite.config.ts'), broken)
  writeFileSync(join(clone, 'docs', '.vitepress', 'config.ts'), broken)
  const { stdout, stderr, page } = await start(clone, data, {})
  assertOneLineEach(stderr, /^The dashboard could not be built: no binary for this platform\. The service runs without the dashboard\./m)
  assert.doesNotMatch(stdout, /Dashboard|#token=/)
  assert.match(stdout, /Control API/)
  assert.match(page, /npm run build:dashboard/)
})

test('if the pinned runtime has no binary, the Node.js that started the script is used', (t) => {
  const { clone } = copyRepository(t)
  rmSync(join(clone, 'node_modules', 'node'))
  const version = execFileSync(process.execPath, [join(clone, 'scripts', 'run.mjs'), 'packages/server/src/cli.ts', '--version'], {
    encoding: 'utf8',
  })
  assert.match(version, /^\d+\.\d+\.\d+\n$/)
})

test('the service and the command line keep what was compiled, and the next run uses it', (t) => {
  const { clone } = copyRepository(t)
  const { NODE_COMPILE_CACHE: _, ...env } = process.env
  const compiledBy = (): string[] => {
    execFileSync(process.execPath, [join(clone, 'scripts', 'run.mjs'), 'packages/server/src/cli.ts', '--version'], { env })
    const folder = join(clone, 'node_modules', '.cache', 'switchyard-compiled')
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    return files.map(({ parentPath, name }) => `${name} ${statSync(join(parentPath, name)).mtimeMs}`).sort()
  }
  const first = compiledBy()
  assert.ok(first.length > 5, `${first.length} files`)
  assert.deepEqual(compiledBy(), first)
})

test('npm start works in a clone that it cannot write to, with its data elsewhere', {
  skip: IS_ROOT && !isOpen(repository) && 'another user than root is needed, who cannot enter this clone',
}, async (t) => {
  const { clone, data } = copyRepository(t)
  for (const name of readdirSync(clone, { recursive: true, encoding: 'utf8' }))
    if (!name.startsWith('node_modules/')) chmodSync(join(clone, name), statSync(join(clone, name)).mode & 0o555)
  chmodSync(clone, 0o555)
  // File permissions do not apply to root.
  const { stdout, stderr, page } = await start(clone, data, asUser())
  assertOneLineEach(stderr, /^The dashboard could not be built: (EACCES|EROFS): /m)
  assert.doesNotMatch(stdout, /Dashboard/)
  assert.match(page, /npm run build:dashboard/)
  assert.deepEqual(
    readdirSync(join(clone, 'node_modules')).filter((name) => name === '.switchyard-installed'),
    [],
  )
})

function isOpen(folder: string): boolean {
  return (statSync(folder).mode & 0o001) !== 0 && (folder === '/' || isOpen(dirname(folder)))
}
