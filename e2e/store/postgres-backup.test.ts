// The commands for backup and restore in docs/operations/postgresql.md, with the tools of a PostgreSQL server that is installed on this
// machine, because the one that the tests install has no tools.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { PostgresServer } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { switchyard } from '../system/command-line.ts'
import { type Node, send, startNode } from '../system/nodes-in-process.ts'
import { startReceiver } from '../system/receiver.ts'
import { type LedgerRow, TOKEN } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

const INSTALLED = globSync('/usr/lib/postgresql/*/bin').find((folder) =>
  ['postgres', 'initdb', 'pg_dump', 'pg_restore', 'createdb'].every((name) => existsSync(join(folder, name))),
)
const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'operations', 'postgresql.md')

/** The commands of the code block that contains this word. */
function lines(word: string): string {
  const fences = [...readFileSync(PAGE, 'utf8').matchAll(/^ *```sh\n(.*?)^ *```$/gms)].map(([, text = '']) => text)
  return fences.find((text) => text.includes(word)) ?? assert.fail(`no lines with ${word}`)
}

function ledger(node: Node): Promise<{ consistent: boolean; data: LedgerRow[] }> {
  return node.api('/ledger?recount=true')
}

const nothingPending = (node: Node) =>
  eventually(
    () => ledger(node),
    ({ data }) => data.every(({ pending }) => pending === 0),
  )

test('after pg_restore, everything that pg_dump saved while a node ran is there, and pending deliveries are sent', {
  skip: INSTALLED === undefined && 'no PostgreSQL with its tools is installed here',
}, async () => {
  await using parts = new AsyncDisposableStack()
  const folder = parts.adopt(mkdtempSync(join(tmpdir(), 'switchyard-dump-')), (each) => rmSync(each, { recursive: true, force: true }))
  process.env['SWITCHYARD_TEST_POSTGRES_BIN'] = INSTALLED
  // The shared data folder of the tests was created by another version.
  delete process.env['SWITCHYARD_TEST_POSTGRES_DATA']
  const server = parts.adopt(await PostgresServer.start(), (each) => each.dispose())
  const shell = (text: string, env: Record<string, string>): string =>
    execFileSync('sh', ['-euc', text], {
      cwd: folder,
      env: { PATH: `${INSTALLED}:${process.env['PATH'] ?? ''}`, ...env },
      encoding: 'utf8',
    })
  const receiver = parts.use(await startReceiver())

  const node = await startNode(server.url())
  const made = await node.api<{ id: string }>('/destinations', {
    method: 'POST',
    body: { name: 'crm', sourceIds: [node.app.firstSource?.id], urls: [receiver.url], sharedSecret: 'a secret' },
  })
  assert.equal((await send(node, 20, 'delivered')).status, 200)
  await nothingPending(node)
  await node.api(`/destinations/${made.id}`, { method: 'PATCH', body: { paused: true } })
  assert.equal((await send(node, 10, 'owed')).status, 200)
  shell(lines('pg_dump'), { SWITCHYARD_STORE: server.url() })
  assert.equal((await send(node, 5, 'after')).status, 200)
  await node.close()

  shell(lines('pg_restore'), { SWITCHYARD_STORE: server.url(), RESTORED: server.url('restored') })
  const restored = parts.adopt(await startNode(server.url('restored')), (each) => each.close())
  const { code, stdout } = await switchyard({ url: restored.url, token: TOKEN }, 'doctor')
  assert.match(stdout, /The ledger matches a recount of the rows: 1 destination\./)
  assert.equal(code, 0, stdout)
  const [row] = (await ledger(restored)).data
  assert.deepEqual([row?.owed, row?.delivered, row?.pending], [30, 20, 10])
  await restored.api(`/destinations/${made.id}`, { method: 'PATCH', body: { paused: false } })
  const { consistent, data } = await nothingPending(restored)
  assert.deepEqual([consistent, data[0]?.delivered], [true, 30])
  const came = receiver.messages().map(({ messageId }) => messageId)
  assert.deepEqual([came.length, new Set(came).size], [30, 30])
  assert.ok(!came.some((id) => id?.startsWith('after')))
})
