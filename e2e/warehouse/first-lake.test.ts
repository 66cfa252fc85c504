// The first lake of a new user, line by line as the README and the guide have it: before it, the service loads nothing of the warehouse package; then one
// address makes a lake, and what is sent to it can be queried, and is in a PostgreSQL, too.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { PostgresServer } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { asJson, switchyard } from '../system/command-line.ts'
import { startReceiver } from '../system/receiver.ts'
import { startService } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

const QUERY = 'select event, count(*) from tracks group by 1'
const README = ['send', 'track', '--user-id', 'u-1', '--event', 'Order Completed', '--properties', '{"total":12.5}']

const work = mkdtempSync(join(tmpdir(), 'switchyard-first-lake-'))
let postgres: PostgresServer
before(async () => {
  postgres = await PostgresServer.start()
  const admin = await postgres.client()
  await admin.query('CREATE DATABASE analytics')
  await admin.end()
})
after(async () => {
  await postgres?.dispose()
  rmSync(work, { recursive: true, force: true })
})

/** Notes every module that a thread or process of the service loads, in a file. */
function moduleNotes(): { env: Record<string, string>; ofWarehouses: () => string[] } {
  const [hook, file] = [join(work, 'hook.mjs'), join(work, 'loaded')]
  writeFileSync(
    hook,
    `import { registerHooks } from 'node:module'
import { appendFileSync } from 'node:fs'
registerHooks({
  load(url, context, next) {
    try {
      appendFileSync(${JSON.stringify(file)}, url + '\\n')
    } catch {}
    return next(url, context)
  },
})
`,
  )
  return {
    env: { NODE_OPTIONS: `--import=${pathToFileURL(hook).href}` },
    ofWarehouses() {
      const lines = readFileSync(file, 'utf8').split('\n')
      assert.ok(lines.length > 100, 'modules are noted')
      return lines.filter((url) => /packages\/warehouse\/|@duckdb|hyparquet|aws4fetch/.test(url))
    },
  }
}

test('nothing of the package is loaded before the first lake; then the message of the README is in the lake and in PostgreSQL', async () => {
  await using receiver = await startReceiver()
  const modules = moduleNotes()
  await using service = await startService({ env: modules.env })
  await service.destination({ urls: [receiver.url] })
  assert.equal((await switchyard(service, ...README, '--wait')).code, 0)
  assert.match((await switchyard(service, 'sql', QUERY)).stderr, /There is no such lake/)
  await service.api('/destinations')
  assert.deepEqual(modules.ofWarehouses(), [])

  // The folder does not exist yet. The load interval is the shortest one, so that the test need not wait for a minute.
  const url = pathToFileURL(join(service.folder, 'lake', 'main')).href
  assert.match((await switchyard(service, 'destinations', 'create', 'Lake', '--lake', '../main')).stderr, /below the folder of lakes/)
  const lake = await asJson<{ id: string; warehouse: { url: string } }>(service, 'destinations', 'create', 'Lake', '--lake', 'main')
  assert.equal(lake.warehouse.url, url)
  await service.api(`/destinations/${lake.id}`, { method: 'PATCH', body: { load: { everyMs: 1_000 } } })
  const file = join(work, 'tables.json')
  writeFileSync(file, JSON.stringify({ warehouse: { engine: 'postgres', url: postgres.url('analytics') }, load: { everyMs: 1_000 } }))
  const tables = await switchyard(service, 'destinations', 'create', 'Tables', '--warehouse-file', file)
  assert.equal(tables.code, 0, tables.stderr)
  assert.ok(!tables.stdout.includes(new URL(postgres.url()).password), tables.stdout)
  const early = await switchyard(service, 'sql', QUERY)
  assert.match(early.stderr, /Nothing of your sources has been loaded into this lake yet: messages are loaded every 1 s/)
  assert.ok(early.stderr.includes(lake.id), early.stderr)

  const sent = await switchyard(service, ...README, '--wait')
  assert.equal(sent.code, 0, sent.stderr)
  assert.match(sent.stdout, /to "Lake": loaded into file:\/\/\/\S+ by load_\w+ \(\d+ rows\) after/)
  const answer = await asJson<{ rows: unknown[][] }>(service, 'sql', QUERY)
  assert.deepEqual(answer.rows, [['order_completed', 1]])
  const client = await postgres.client('analytics')
  try {
    const { rows } = await client.query<{ event: string; count: string }>(
      'select event, count(*) as count from "default".tracks group by 1',
    )
    assert.deepEqual(rows, [{ event: 'order_completed', count: '1' }])
  } finally {
    await client.end()
  }
  assert.ok(modules.ofWarehouses().length > 0)
  assert.ok(existsSync(join(service.folder, 'lake', 'main', 'default', 'tracks', '_manifest.json')))
  await eventually(
    () => service.ledger(),
    (rows) => rows.every(({ pending }) => pending === 0),
    { what: 'nothing is pending' },
  )
})
