// Opens stores that earlier versions of the service wrote (created by fixtures/make-store.ts, with the commits that they name): nothing is
// missing, secrets can be decrypted, pending deliveries are sent, and the ledger is consistent. Also a store of a later version.

import assert from 'node:assert/strict'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { openWriter } from '../../packages/server/src/store/sqlite/schema/database.ts'
import { MIGRATIONS } from '../../packages/server/src/store/sqlite/schema/migrations.ts'
import { verifyWebhook } from '../../packages/webhook/src/index.ts'
import { createWallClock } from '../machine-faults/wall-clock.ts'
import { startSwitchyard, switchyard } from '../system/command-line.ts'
import { startReceiver } from '../system/receiver.ts'
import { callControl, type DeliveryView, type LedgerRow, runService, type ServiceOptions, startService } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

const FIXTURES = join(import.meta.dirname, 'fixtures')
const STORES = globSync('*.db.gz', { cwd: FIXTURES })
  .map((file) => basename(file, '.db.gz'))
  .sort()

/** As make-store.ts writes them. */
interface Facts {
  commit: string
  madeAt: string
  schema: number
  key: string
  token: string
  viewerToken: string | null
  sharedSecret: string
  signingSecret: string
  /** Only in stores of versions that record it. */
  credentials?: string[]
  sourceId: string
  writeKey: string
  destinations: Record<'good' | 'refusing' | 'failing' | 'silent', string>
  deletion: string
  ledger: Omit<LedgerRow, 'quarantined'>[]
}

interface Story {
  message: Record<string, unknown>
  deliveries: DeliveryView[]
}

/** A service on a copy of the store, with a clock that shows ten minutes after the store was created. */
function unpack(t: TestContext, name: string): { facts: Facts; file: string; options: ServiceOptions } {
  const facts = JSON.parse(readFileSync(join(FIXTURES, `${name}.json`), 'utf8')) as Facts
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-upgrade-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'switchyard.db')
  writeFileSync(file, gunzipSync(readFileSync(join(FIXTURES, `${name}.db.gz`))), { mode: 0o600 })
  writeFileSync(`${file}.key`, `${facts.key}\n`, { mode: 0o600 })
  const clock = createWallClock()
  t.after(() => clock[Symbol.dispose]())
  clock.jump(Date.parse(facts.madeAt) + 600_000 - Date.now())
  return { facts, file, options: { folder, token: null, execArgv: clock.execArgv } }
}

function schemaOf(file: string): number {
  const database = new DatabaseSync(file)
  const { user_version: schema } = database.prepare('PRAGMA user_version').get() as { user_version: number }
  database.close()
  return schema
}

test('there is a store of every schema version', () => {
  const schemas = STORES.map((name) => (JSON.parse(readFileSync(join(FIXTURES, `${name}.json`), 'utf8')) as Facts).schema)
  assert.deepEqual(
    new Set(schemas),
    new Set(MIGRATIONS.map((_, step) => step + 1)),
    'before a step is added, keep a store of the version that is left: fixtures/make-store.ts',
  )
  for (const name of STORES) assert.ok(statSync(join(FIXTURES, `${name}.db.gz`)).size < 100_000, name)
})

for (const name of STORES) {
  test(`a store of an earlier version is upgraded completely: ${name}`, async (t) => {
    const { facts, file, options } = unpack(t, name)
    const { destinations: ids } = facts
    assert.equal(schemaOf(file), facts.schema)

    await t.test('doctor finds no problem in the file before it is opened for the first time', async () => {
      const env = { SWITCHYARD_STORE: `sqlite:${file}`, SWITCHYARD_URL: 'http://127.0.0.1:9' }
      const { stdout } = await startSwitchyard(null, ['doctor'], { env }).ended
      assert.match(stdout, /switchyard\.db is intact/)
      assert.match(stdout, /The ledger matches a recount of the rows: 4 destinations/)
      assert.match(stdout, /The key in \S+ decrypts the stored secrets/)
      assert.equal(schemaOf(file), facts.schema, 'and leaves it as it is')
    })

    await using receiver = await startReceiver()
    await using service = await startService(options)
    const api = <T>(path: string, init?: { method?: string; body?: unknown }): Promise<T> =>
      callControl(service.url, facts.token, path, init)
    const ledger = async (query = ''): Promise<LedgerRow[]> => (await api<{ data: LedgerRow[] }>(`/ledger${query}`)).data
    assert.equal(schemaOf(file), MIGRATIONS.length)

    await t.test('the ledger is the same as before, and equals its recount', async () => {
      // Earlier versions did not count messages in quarantine.
      const expected = facts.ledger.map((row) => ({ quarantined: 0, ...row }))
      assert.deepEqual(await ledger(), expected)
      assert.deepEqual(await ledger('?recount=true'), expected)
    })

    await t.test('every message, its outcomes and the deletion requests are there', async () => {
      const { message, deliveries } = await api<Story>('/messages/m-1')
      assert.deepEqual(message['traits'], { plan: 'pro', name: 'Ünïcode ✓' })
      const states = new Map(deliveries.map(({ destinationId, state, attemptCount }) => [destinationId, [state, attemptCount]]))
      assert.deepEqual(states.get(ids.good), ['delivered', 1])
      assert.deepEqual(states.get(ids.refusing), ['failed', 1])
      assert.deepEqual(states.get(ids.failing), ['pending', 1])
      for (const id of ['m-2', 'm-3', 'm-4']) await api(`/messages/${id}`)
      const { data: failed } = await api<{ data: DeliveryView[] }>(`/deliveries?destinationId=${ids.refusing}&state=failed`)
      assert.deepEqual(new Set(failed.map(({ reason }) => reason)), new Set(['http_404']))
      assert.equal((await api<{ id: string }>(`/deletions/${facts.deletion}`)).id, facts.deletion)
      const { data: suppressions } = await api<{ data: { userId: string }[] }>('/suppressions')
      assert.deepEqual(
        suppressions.map(({ userId }) => userId),
        ['u-9'],
      )
      const { data: sources } = await api<{ data: { id: string; writeKeys: string[] }[] }>('/sources')
      assert.deepEqual(sources.find(({ id }) => id === facts.sourceId)?.writeKeys, [facts.writeKey])
    })

    await t.test(
      "receivers' credentials are readable nowhere, in the file, beside it and in a backup, and can still be sent",
      async (t) => {
        const { credentials = [] } = facts
        if (credentials.length === 0) return t.skip('none are in it')
        const unpacked = gunzipSync(readFileSync(join(FIXTURES, `${name}.db.gz`)))
        for (const text of credentials) assert.equal(unpacked.includes(text), facts.schema < 3, 'it was plain before schema 3')
        const backup = join(options.folder ?? '', 'backup.db')
        const made = await switchyard({ url: service.url, token: facts.token }, 'backup', backup)
        assert.equal(made.code, 0, made.stderr)
        const { headers, urls } = await api<{ headers: object; urls: string[] }>(`/destinations/${ids.good}`)
        for (const text of credentials) {
          for (const suffix of ['', '-wal', '-shm']) {
            const path = `${file}${suffix}`
            assert.ok(!existsSync(path) || !readFileSync(path).includes(text), `${text} in switchyard.db${suffix}`)
          }
          assert.ok(!readFileSync(backup).includes(text), `${text} in the backup`)
          assert.ok(JSON.stringify({ headers, urls }).includes(text), 'the service has it')
        }
      },
    )

    await t.test('tokens have the same permissions', async () => {
      await assert.rejects(callControl(service.url, 'sy_another', '/sources'), /401/)
      if (facts.viewerToken === null) return
      await callControl(service.url, facts.viewerToken, '/sources')
      await assert.rejects(callControl(service.url, facts.viewerToken, '/sources', { method: 'POST', body: { name: 'x' } }), /403/)
    })

    await t.test('pending messages are delivered once, signed with the stored secrets', async () => {
      for (const id of Object.values(ids)) {
        // Another server: header values must be sent again.
        const { headers } = await api<{ headers: object }>(`/destinations/${id}`)
        await api(`/destinations/${id}`, { method: 'PATCH', body: { urls: [`${receiver.url}${id}`], headers, enabled: true } })
      }
      const sent = await send(service.url, facts.writeKey, [
        { type: 'track', messageId: 'm-2', userId: 'u-1', event: 'Order Completed' },
        { type: 'track', messageId: 'm-new', userId: 'u-1', event: 'Upgraded' },
        { type: 'track', messageId: 'm-gone', userId: 'u-9', event: 'Suppressed' },
      ])
      assert.equal(sent, 200)
      // Not m-2, which is a duplicate, and nothing of u-9, who is suppressed.
      const before = new Map(facts.ledger.map((row) => [row.destinationId, row]))
      const rows = await eventually(ledger, (all) => all.every(({ pending }) => pending === 0), { what: 'nothing is pending' })
      for (const { destinationId, owed, delivered, failed } of rows) {
        const then = before.get(destinationId) as LedgerRow
        assert.equal(owed, then.owed + 1)
        assert.deepEqual([delivered, failed], [then.delivered + then.pending + 1, then.failed])
      }
      assert.deepEqual(await ledger('?recount=true'), rows)
      const at = (id: string) => receiver.arrivals.filter(({ path }) => path === `/${id}`)
      assert.deepEqual(
        at(ids.failing)
          .flatMap(({ messages }) => messages.map(({ messageId }) => messageId ?? 'of a deletion'))
          .sort(),
        ['m-1', 'm-2', 'm-3', 'm-4', 'm-new', 'of a deletion'],
      )
      const now = (): number => Date.parse(facts.madeAt) + 600_000
      const { sharedSecret, signingSecret } = facts
      for (const { bytes, headers } of at(ids.silent)) assert.ok(verifyWebhook({ body: bytes, headers }, { sharedSecret }).ok)
      const [last] = at(ids.good)
      assert.ok(last)
      assert.equal(last.headers['x-team'], 'shop')
      assert.ok(verifyWebhook({ body: last.bytes, headers: last.headers }, { sharedSecret, signingSecrets: signingSecret, now }).ok)
    })

    await t.test('a destination can be ordered now: a failed message delays the later ones of its user', async () => {
      const retry = { initialMs: 100, maxMs: 200, factor: 2 }
      await api(`/destinations/${ids.good}`, { method: 'PATCH', body: { order: {}, retry, batch: { size: 1 } } })
      const at = () =>
        receiver.arrivals.flatMap(({ path, status, messages }) =>
          path === `/${ids.good}` ? messages.map(({ messageId }) => `${messageId} ${status}`) : [],
        )
      const before = at().length
      let failures = 0
      receiver.answer = ({ path, messages }) => {
        if (path !== `/${ids.good}` || messages[0]?.messageId !== 'm-first' || failures === 2) return undefined
        failures++
        return { status: 500 }
      }
      const names = ['m-first', 'm-second', 'm-third']
      const messages = names.map((messageId) => ({ type: 'track', messageId, userId: 'u-1', event: 'Ordered' }))
      assert.equal(await send(service.url, facts.writeKey, messages), 200)
      const rows = await eventually(ledger, (all) => all.every(({ pending }) => pending === 0), { what: 'nothing is pending' })
      assert.deepEqual(await ledger('?recount=true'), rows)
      assert.deepEqual(at().slice(before), ['m-first 500', 'm-first 500', 'm-first 200', 'm-second 200', 'm-third 200'])
    })

    await t.test('doctor finds no problem', async () => {
      const { code, stdout } = await switchyard({ url: service.url, token: facts.token }, 'doctor')
      assert.equal(code, 0, stdout)
      assert.match(stdout, /✔ The ledger matches a recount/)
    })

    const { code } = await service.stop()
    assert.equal(code, 0)
  })
}

test('a migration step that fails leaves the store unchanged, and succeeds later', (t) => {
  const { file, facts } = unpack(t, STORES[0] as string)
  const tables = (): string[] => {
    const database = new DatabaseSync(file)
    const rows = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all() as { name: string }[]
    database.close()
    return rows.map(({ name }) => name)
  }
  // Conflicts with the last table that the next step creates.
  const [, last = ''] = [...(MIGRATIONS[facts.schema] as string).matchAll(/CREATE TABLE (\w+)/g)].at(-1) ?? []
  const inTheWay = new DatabaseSync(file)
  inTheWay.exec(`CREATE TABLE ${last} (in_the_way INTEGER)`)
  inTheWay.close()
  const before = tables()
  assert.throws(() => openWriter(file), new RegExp(`table ${last} already exists`))
  assert.deepEqual([schemaOf(file), tables()], [facts.schema, before])
  const again = new DatabaseSync(file)
  again.exec(`DROP TABLE ${last}`)
  again.close()
  openWriter(file).close()
  assert.equal(schemaOf(file), MIGRATIONS.length)
  assert.ok(tables().length > before.length)
})

test('a store of a later version is refused with a clear message, and not changed', async (t) => {
  const { file, options } = unpack(t, STORES.at(-1) as string)
  const database = new DatabaseSync(file)
  database.exec(`PRAGMA user_version = ${MIGRATIONS.length + 1}`)
  database.close()
  const before = readFileSync(file)
  const { code, stderr } = await runService({ env: { SWITCHYARD_STORE: `sqlite:${file}`, SWITCHYARD_PORT: '0', ...options.env } }).ended
  assert.equal(code, 1)
  assert.match(
    stderr,
    /was written by a newer version of Switchyard .* Start the newer version, or restore a backup that was made before the upgrade\.\n$/,
  )
  assert.ok(readFileSync(file).equals(before))
})

async function send(url: string, writeKey: string, batch: object[]): Promise<number> {
  const authorization = `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`
  const headers = { authorization, 'content-type': 'application/json' }
  return (await fetch(`${url}/v1/batch`, { method: 'POST', headers, body: JSON.stringify({ batch }) })).status
}
