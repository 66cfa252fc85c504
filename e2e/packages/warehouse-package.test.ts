// @switchyard/warehouse, packed: what is in it, its types in a scratch project, and that the published service installs it and uses it. Installing it downloads
// 70 MB or takes them from npm's cache, so that is done only with SWITCHYARD_LONG_TESTS=1.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { publint } from 'publint'
import { type Lockfile, subsetOf } from '../../packages/server/src/installation/lockfile-subset.ts'
import { buildServer } from '../../scripts/build-server.ts'
import { buildWarehouse } from '../../scripts/build-warehouse.ts'
import { IS_LONG } from '../system/long-tests.ts'
import { npm, run } from '../system/run-program.ts'
import { eventually } from '../system/signals.ts'
import { compile, ES_MODULES } from './compile.ts'
import { installIn, pack, readJson, repository } from './installed-packages.ts'

const workspace = mkdtempSync(join(tmpdir(), 'switchyard-warehouse-package-'))
const built = join(workspace, 'built')
let tarball: string

before(async () => {
  await buildWarehouse(built)
  await npm(['pack', built, '--pack-destination', workspace], { cwd: workspace })
  tarball = join(workspace, readdirSync(workspace).find((file) => file.endsWith('.tgz')) as string)
})

after(() => rmSync(workspace, { recursive: true, force: true }))

test('the package has compiled code with types, the licence, and no dependency on packages that are not published with it', async () => {
  const manifest = await readJson(join(built, 'package.json'))
  assert.equal(manifest['version'], (await readJson(join(repository, 'package.json')))['version'])
  for (const field of ['private', 'scripts', 'devDependencies']) assert.equal(manifest[field], undefined, field)
  const exports = Object.values(manifest['exports'] as Record<string, string>)
  for (const path of exports) assert.ok(existsSync(join(built, path)), path)
  for (const path of exports.filter((name) => name.endsWith('.js')))
    assert.ok(existsSync(join(built, path.replace(/\.js$/, '.d.ts'))), path)
  const names = Object.keys(manifest['dependencies'] as object)
  assert.deepEqual(
    names.filter((name) => name.startsWith('@switchyard/')),
    [],
  )
  const files = globSync('**/*.*', { cwd: built })
  assert.ok(files.includes('README.md') && readdirSync(built).includes('LICENSE'))
  // The process of a query reads it before the query comes.
  assert.ok(files.includes('warm-up.parquet') && (manifest['files'] as string[]).includes('warm-up.parquet'))
  assert.deepEqual(
    files.filter((file) => /\.test\.|fixtures|(?<!\.d)\.ts$|\.py$/.test(file)),
    [],
  )
  for (const file of files.filter((name) => /\.(js|ts)$/.test(name))) {
    const text = readFileSync(join(built, file), 'utf8')
    assert.doesNotMatch(text, /['"]@switchyard\//, file)
    assert.ok(!text.includes(repository), `${file} names a path of the machine that built it`)
  }
  const { messages } = await publint({
    pack: { tarball: Uint8Array.from(readFileSync(tarball)).buffer },
    strict: true,
    level: 'suggestion',
  })
  assert.deepEqual(messages, [])
})

test('in a scratch project, it makes rows and writes a lake, and a TypeScript program that uses it compiles', async () => {
  const project = join(workspace, 'project')
  const home = join(project, 'node_modules', '@switchyard', 'warehouse')
  mkdirSync(home, { recursive: true })
  cpSync(built, home, { recursive: true })
  copyDependencies(join(project, 'node_modules'), 'warehouse')
  const program = join(project, 'program.ts')
  writeFileSync(
    program,
    `import type { SourceSchema, Warehouse } from '@switchyard/warehouse'
import { createWarehouse } from '@switchyard/warehouse/engines'
import { evolve } from '@switchyard/warehouse/schema'
import { SqlRunner } from '@switchyard/warehouse/sql'
const warehouse: Warehouse = createWarehouse({ engine: 'parquet', url: 'file:///lake/main' }, { lakeFolder: '/lake' })
const schema: SourceSchema = { name: 'shop', revision: 0, tables: [] }
export const revision: number = evolve(schema, [], { engine: 'parquet', loadedAtMs: 0 }).schema.revision
export const runner: SqlRunner = new SqlRunner()
export const ended: Promise<void> = warehouse.close()
`,
  )
  await compile(project, [program], ES_MODULES)
  const schema = { name: 'shop', revision: 0, tables: [] }
  const { evolve } = (await import(pathToFileURL(join(home, 'dist', 'schema', 'evolve.js')).href)) as {
    evolve: (schema: object, messages: { text: string }[], options: object) => { tablesOf: string[][] }
  }
  const text = JSON.stringify({ type: 'track', messageId: 'm', event: 'Paid', receivedAt: '2026-11-19T00:00:00.000Z', properties: {} })
  const { tablesOf } = evolve(schema, [{ text }], { engine: 'parquet', loadedAtMs: 1 })
  assert.deepEqual(tablesOf[0]?.sort(), ['_messages', 'paid', 'tracks'])
})

test('the published service knows exactly what to install: each package with its version and hash', async () => {
  const server = join(workspace, 'server')
  await buildServer(server, { warehouse: tarball })
  const { lockfile, integrity } = (await readJson(join(server, 'packages', 'server', 'warehouse.json'))) as {
    lockfile: { packages: Record<string, { version?: string; integrity?: string; link?: boolean; dev?: boolean }> }
    integrity: string
  }
  assert.equal(integrity, `sha512-${hash('sha512', readFileSync(tarball), 'base64')}`)
  const { '': top, ...packages } = lockfile.packages
  assert.ok(top !== undefined && packages['node_modules/hyparquet-writer'] !== undefined)
  for (const platform of ['linux-x64', 'linux-arm64', 'darwin-arm64', 'win32-x64'])
    assert.ok(packages[`node_modules/@duckdb/node-bindings-${platform}`] !== undefined, platform)
  for (const [place, { version, integrity: hashOf, link, dev }] of Object.entries(packages))
    assert.ok(version !== undefined && hashOf !== undefined && link === undefined && dev === undefined, place)
})

test('the published service installs it, loads a message into a lake, and queries it', {
  skip: !IS_LONG && 'SWITCHYARD_LONG_TESTS=1 runs it',
}, async (t) => {
  const site = join(workspace, 'site')
  await installIn(site, Object.values<string>(await pack(join(workspace, 'tarballs'))))
  const home = join(site, 'node_modules', '@switchyard', 'server')
  cpSync(join(workspace, 'server'), home, { recursive: true })
  copyDependencies(join(site, 'node_modules'), 'server')
  const program = join(home, 'bin', 'switchyard.js')
  // With the default store, ./data/switchyard.db, for both commands.
  const env = {
    ...process.env,
    SWITCHYARD_PORT: '0',
    SWITCHYARD_ADMIN_TOKEN: 'packaged',
    SWITCHYARD_LOG: 'warn',
  }
  const child = spawn(process.execPath, [program, 'serve', '--json'], { cwd: site, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  t.after(() => child.kill('SIGKILL'))
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const { url, source } = JSON.parse(line) as { url: string; source: { id: string; writeKeys: string[] } }
  const headers = { authorization: 'Bearer packaged', 'content-type': 'application/json' }
  const post = async (path: string, body: object): Promise<{ status: number; body: Record<string, unknown> }> => {
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const warehouse = { engine: 'parquet', url: pathToFileURL(join(site, 'data', 'lake', 'main')).href }
  const lake = { type: 'warehouse', name: 'Lake', sourceIds: [source.id], warehouse, load: { everyMs: 1_000 } }
  assert.equal((await post('/api/destinations', lake)).body['code'], 'not_installed')
  await run(process.execPath, [program, 'warehouse', 'install', '--from', tarball], { cwd: site, deadlineMs: 300_000 })
  assert.equal((await post('/api/destinations', lake)).status, 201)
  const authorization = `Basic ${Buffer.from(`${source.writeKeys[0]}:`).toString('base64')}`
  const message = JSON.stringify({ userId: 'u-1', event: 'Order Completed', messageId: 'p-1' })
  assert.equal((await fetch(`${url}/v1/track`, { method: 'POST', headers: { authorization }, body: message })).status, 200)
  const query = { query: 'select event, count(*) from tracks group by 1' }
  const { body } = await eventually(
    () => post('/api/sql', query),
    ({ status }) => status === 200,
    { what: 'the row in the lake', deadlineMs: 60_000 },
  )
  assert.deepEqual(body['rows'], [['order_completed', 1]])
  child.kill('SIGTERM')
  await ended
})

/** Copies what a registry would provide. Links would not do, because the process that loads may read only the folders of installed packages. */
function copyDependencies(modules: string, workspaceName: string): void {
  const locked = JSON.parse(readFileSync(join(repository, 'package-lock.json'), 'utf8')) as Lockfile
  for (const place of Object.keys(subsetOf(locked, `packages/${workspaceName}`, { name: workspaceName }).packages)) {
    const own = [join(repository, 'packages', workspaceName, place), join(repository, place)].find((path) => existsSync(path))
    if (place !== '' && own !== undefined) cpSync(own, join(modules, '..', place), { recursive: true })
  }
}
