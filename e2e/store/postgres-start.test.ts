// The service on PostgreSQL: several nodes that start at once, reasons why a node does not start, and commands for operators.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { StartProblem } from '../../packages/server/src/app.ts'
import { readConfig } from '../../packages/server/src/config.ts'
import { asWebhook } from '../../packages/server/src/destinations/fixtures/webhook.ts'
import { MaintenanceProblem, rotateSecretKey } from '../../packages/server/src/installation/maintenance.ts'
import { createLog } from '../../packages/server/src/logging/log.ts'
import { freePort } from '../../packages/server/src/store/fixtures/free-port.ts'
import { createDatabase, PostgresServer, type TestDatabase } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { startSwitchyard, switchyard } from '../system/command-line.ts'
import { STOPPED_WITHIN_MS } from '../system/long-tests.ts'
import { SECRET_KEY, startCluster, startNode } from '../system/nodes-in-process.ts'
import { callControl, runService, TOKEN } from '../system/service.ts'

/** Keeps the PostgreSQL server that the tests share running. */
let held: TestDatabase
before(async () => {
  held = await createDatabase()
})
after(() => held.drop())

test('three nodes that start at once on an empty database have one source and one admin token', async () => {
  await using cluster = await startCluster({ nodes: 3, env: { SWITCHYARD_ADMIN_TOKEN: '' } })
  const apps = cluster.nodes.map(({ app }) => app)
  const [token, ...more] = apps.flatMap(({ generatedToken }) => generatedToken ?? [])
  assert.ok(token !== undefined)
  assert.deepEqual(more, [], 'one of them shows the token')
  assert.equal(new Set(apps.map(({ firstSource }) => firstSource?.id)).size, 1)
  for (const { url } of apps) {
    const { data }: { data: { name: string }[] } = await callControl(url, token, '/sources')
    assert.deepEqual(
      data.map(({ name }) => name),
      ['default', 'system'],
    )
  }
})

test('a node that starts later has the same configuration', async () => {
  await using cluster = await startCluster({ nodes: 1 })
  const later = await cluster.start()
  assert.equal(later.app.firstSource?.id, cluster.nodes[0]?.app.firstSource?.id)
})

test('without a secret key the service does not start, and says how to create one', async () => {
  const database = await createDatabase({ isEmpty: true })
  try {
    await assert.rejects(startNode(database.url, { SWITCHYARD_SECRET_KEY: '' }), (error: Error) => {
      assert.ok(error instanceof StartProblem)
      assert.match(error.message, /SWITCHYARD_SECRET_KEY is required.*rotate-key --generate.*openssl rand/)
      return true
    })
  } finally {
    await database.drop()
  }
})

test('a wrong secret key is refused with the same message as on SQLite, also at the first start', async () => {
  await using cluster = await startCluster({ nodes: 1 })
  await assert.rejects(cluster.start({ SWITCHYARD_SECRET_KEY: 'another key for these tests' }), (error: Error) => {
    assert.ok(error instanceof StartProblem, String(error))
    assert.match(error.message, /but the key in use is.*Set SWITCHYARD_SECRET_KEY to the key/)
    return true
  })
})

test('a wrong password is reported at once, without the password', async () => {
  const server = await PostgresServer.start()
  try {
    const wrong = server.url().replace(/:[^:@/]+@/, ':SECRET-wrong@')
    await assert.rejects(startNode(wrong), (error: Error) => {
      assert.ok(error instanceof StartProblem, String(error))
      assert.match(error.message, /Cannot use the store at 127\.0\.0\.1:\d+\/postgres.*authentication failed/)
      for (let at: unknown = error; at instanceof Error; at = at.cause) assert.doesNotMatch(`${at.stack}`, /SECRET-wrong/)
      return true
    })
  } finally {
    await server.dispose()
  }
})

test('a node that is started before its database waits for it', async () => {
  const server = await PostgresServer.start()
  try {
    await server.kill()
    const lines: string[] = []
    const write = (_fields: unknown, message?: string): void => {
      lines.push(String(message ?? _fields))
      // The server is started when the node reports that it waits, so the node was certainly first.
      if (/retrying for up to/.test(lines.at(-1) ?? '')) void server.run()
    }
    const log = Object.assign(createLog('silent'), { info: write, warn: write })
    const node = await startNode(server.url(), {}, log)
    try {
      assert.equal((await fetch(`${node.url}/readyz`)).status, 200)
      assert.ok(lines.some((line) => /connected to the store/.test(line)))
    } finally {
      await node.close()
    }
  } finally {
    await server.dispose()
  }
})

test('a node stops on a signal while it waits for its database', async () => {
  const port = await freePort()
  const env = { SWITCHYARD_STORE: `postgres://me:SECRET@127.0.0.1:${port}/x`, SWITCHYARD_SECRET_KEY: SECRET_KEY, SWITCHYARD_PORT: '0' }
  const waiting = runService({ env })
  await waiting.signals.until(() => waiting.stderr().includes('retrying for up to 60 s'))
  assert.ok(waiting.stderr().includes(`"store":"127.0.0.1:${port}/x"`), waiting.stderr())
  waiting.kill('SIGTERM')
  const { code, ms, stdout, stderr } = await waiting.ended
  assert.equal(code, 0, stderr)
  assert.ok(ms < STOPPED_WITHIN_MS)
  assert.doesNotMatch(stdout + stderr, /SECRET/)
})

test('a backup is refused with an error code and the names of PostgreSQL’s tools', async () => {
  await using cluster = await startCluster({ nodes: 1 })
  const { url } = cluster.nodes[0] as { url: string }
  const response = await fetch(`${url}/api/backups`, { method: 'POST', headers: { authorization: `Bearer ${TOKEN}` } })
  const { code, message } = (await response.json()) as { code: string; message: string }
  assert.deepEqual([response.status, code], [409, 'backup_unsupported'])
  assert.match(message, /pg_dump/)
})

test('the doctor reports on the server and the nodes, and never prints the password', async () => {
  await using cluster = await startCluster({ nodes: 2 })
  const password = /:([^:@/]+)@/.exec(cluster.database.url)?.[1] ?? assert.fail()
  const service = { url: cluster.nodes[0]?.url as string, token: TOKEN }
  const asked = await switchyard(service, 'doctor', '--json')
  const { checks } = JSON.parse(asked.stdout) as { checks: { name: string; state: string; message: string }[] }
  assert.equal(asked.code, 0, asked.stdout)
  for (const name of ['nodes', 'server_clock', 'server_connections', 'ledger', 'store_integrity'])
    assert.equal(checks.find((check) => check.name === name)?.state, 'good', name)
  assert.ok(!asked.stdout.includes(password))

  // If no service answers, doctor connects to the server itself.
  const env = { SWITCHYARD_STORE: cluster.database.url, SWITCHYARD_URL: 'http://127.0.0.1:9' }
  const alone = await startSwitchyard(null, ['doctor', '--json'], { env }).ended
  const found = JSON.parse(alone.stdout) as { checks: { name: string; state: string; message: string }[] }
  assert.match(found.checks.find(({ name }) => name === 'store')?.message ?? '', /^PostgreSQL .* responds/)
  assert.match(found.checks.find(({ name }) => name === 'nodes')?.message ?? '', /These nodes are running/)
  assert.ok(!alone.stdout.includes(password))
})

test('the secret key is changed while no node runs, and the old one is refused afterwards', async () => {
  await using cluster = await startCluster({ nodes: 1 })
  const [node] = cluster.nodes
  await node?.api('/destinations', {
    method: 'POST',
    body: { name: 'one', sourceIds: [node.app.firstSource?.id], urls: ['http://127.0.0.1:9/'], sharedSecret: 'SECRET-shared' },
  })
  const read = readConfig({ SWITCHYARD_STORE: cluster.database.url })
  assert.ok(read.kind === 'config')
  const rotate = () => rotateSecretKey({ store: read.config.store, oldKey: SECRET_KEY, newKey: 'the next key of these tests' })
  await assert.rejects(
    rotate,
    (error: Error) => error instanceof MaintenanceProblem && /Nodes are running on this store/.test(error.message),
  )
  await node?.close()
  const { secrets, keyFile } = await rotate()
  assert.ok(secrets >= 2)
  assert.equal(keyFile, null)
  await assert.rejects(cluster.start(), StartProblem)
  const next = await cluster.start({ SWITCHYARD_SECRET_KEY: 'the next key of these tests' })
  const [destination] = [...next.app.store.configuration().destinations.values()]
  assert.equal(asWebhook(destination).sharedSecret, 'SECRET-shared')
})
