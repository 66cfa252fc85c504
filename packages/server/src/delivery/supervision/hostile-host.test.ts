// What code in a host that has been taken over can do to the service: it can end its own host, and nothing else.

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import inspector from 'node:inspector'
import { getPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { integrationOf } from '../../destinations/fixtures/integration.ts'
import type { Destination } from '../../store/store.ts'
import { runInHost } from '../fixtures/run-in-host.ts'
import { testHosts } from '../fixtures/test-hosts.ts'

const UNREADABLE = 'switchyard-host-1 sent a packet that cannot be read'

test('a host can neither read nor write files with SQLite, which the permission model does not check', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-host-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'switchyard.db')
  const database = new DatabaseSync(file)
  database.exec(`CREATE TABLE secrets (value TEXT); INSERT INTO secrets VALUES ('secret of the service')`)
  database.close()
  const run = runInHost(t)
  for (const load of [
    `await load('node:sqlite')`,
    `process.getBuiltinModule('node:sqlite')`,
    `(await load('node:module')).createRequire('/')('node:sqlite')`,
  ]) {
    const code = `const { DatabaseSync } = ${load}; const made = new DatabaseSync(':memory:')
      made.exec("ATTACH DATABASE '${file}' AS theirs; VACUUM INTO '${folder}/copy'"); return made.prepare('SELECT value FROM theirs.secrets').get()`
    assert.match(String(await run(code)), /^error /, load)
  }
  assert.deepEqual(readdirSync(folder), ['switchyard.db'])
})

test('a host can neither open a debugger in the service, nor change its priority', async (t) => {
  const run = runInHost(t)
  const before = getPriority()
  assert.equal(await run('process._debugProcess(process.ppid)'), 'error process._debugProcess() is not allowed in an integration')
  assert.equal(
    await run(`(await load('node:os')).setPriority(process.ppid, 19)`),
    'error os.setPriority() is not allowed in an integration',
  )
  assert.equal(getPriority(), before)
  assert.equal(inspector.url(), undefined)
})

const serialized = (value: string): string => `
  const body = (await load('node:v8')).serialize(${value})
  const header = Buffer.alloc(4); header.writeUInt32LE(body.length)
  forged = Buffer.concat([header, body])`
const FORGED: Record<string, string> = {
  'bytes that are no message': `forged = Buffer.concat([Buffer.from([8, 0, 0, 0]), Buffer.from('garbage!')])`,
  'an empty message': `forged = Buffer.from([0, 0, 0, 0, 0])`,
  'a message that claims to have 4 GB': `forged = Buffer.from([255, 255, 255, 255, 0])`,
  null: serialized('null'),
  'a command of node:child_process': serialized(`{ cmd: 'NODE_HANDLE', type: 'nobody', msg: {} }`),
  'a packet without an end': serialized(`{ buffer: new ArrayBuffer(8), numbers: NaN, values: [], spare: [], rssBytes: null }`),
  'more numbers than bytes': serialized(`{ buffer: new ArrayBuffer(8), numbers: 5, values: [], spare: [], rssBytes: null }`),
  'a packet without a buffer': serialized(`{ buffer: 1e9, numbers: 1e9, values: [], spare: [], rssBytes: null }`),
  'tokens that are no texts': serialized(
    `{ buffer: new Float64Array([0, -3]).buffer, numbers: 2, values: ['dst_1', { accessToken: {} }], spare: [], rssBytes: null }`,
  ),
  'an outcome without its values': serialized(
    `{ buffer: new Float64Array([1, 0, 0, 0, NaN, NaN, 0, 0, 0, 0, 0, NaN, 1]).buffer, numbers: 13, values: [], spare: [], rssBytes: null }`,
  ),
}

for (const [what, code] of Object.entries(FORGED)) {
  test(`${what}: ends the host, and not the service`, async (t) => {
    const run = runInHost(t)
    assert.equal(await run('return 1'), 1)
    const forge = `let forged; ${code}; (await load('node:fs')).writeSync(3, forged); await new Promise(() => undefined)`
    assert.equal(await run(forge), UNREADABLE)
  })
}

test('buffers that a host claims to return are not used', async (t) => {
  const run = runInHost(t)
  const packet = `{ buffer: new ArrayBuffer(0), numbers: 0, values: [], spare: [{ byteLength: 1e9 }, null], rssBytes: null }`
  await run(`let forged; ${serialized(packet)}; (await load('node:fs')).writeSync(3, forged)`)
  assert.equal(await run('return 2'), 2)
})

test('a host can replace the refresh token of a destination only if it was given that token', async (t) => {
  const replaced: string[] = []
  const { hosts } = testHosts({
    count: 1,
    program: new URL('../fixtures/test-host.ts', import.meta.url),
    onNewRefreshToken: (id, { usedRefreshToken, refreshToken }) => void replaced.push(`${id}: ${usedRefreshToken} to ${refreshToken}`),
  })
  t.after(() => hosts.close())
  const about = { isBatch: false, attempt: 1, replay: false, startedAtMs: 0, keepAnswer: false, limit: 1, urls: [0], messages: [] }
  const run = (destination: Destination): Promise<void> =>
    new Promise((resolve) => hosts.start({ ...about, destination, answered: () => resolve(), unsent: () => resolve(), bug: assert.fail }))
  const toolOf = (id: string, refreshToken: string, code: string): Destination =>
    integrationOf({ id, settings: { code, oauth: { refreshToken } } })
  await run(toolOf('dst_victim', 'theirs', 'return 1'))
  const reports = [
    ['dst_victim', 'guessed', 'forged'],
    ['dst_victim', null, 'forged'],
    ['dst_unknown', null, 'forged'],
    ['dst_own', 'one', 'two'],
    // Only its access token was renewed.
    ['dst_own', 'two', 'two'],
    ['dst_own', 'two', 'three'],
  ]
  const values = reports.flatMap(([id, usedRefreshToken, refreshToken]) => [id, { accessToken: 'new', usedRefreshToken, refreshToken }])
  const numbers = reports.flatMap(() => [0, -3])
  const packet = `{ buffer: new Float64Array(${JSON.stringify(numbers)}).buffer, numbers: ${numbers.length}, values: ${JSON.stringify(values)}, rssBytes: null }`
  await run(toolOf('dst_own', 'one', `let forged; ${serialized(packet)}; (await load('node:fs')).writeSync(3, forged)`))
  assert.deepEqual(replaced, ['dst_own: one to two', 'dst_own: two to three'])
})
