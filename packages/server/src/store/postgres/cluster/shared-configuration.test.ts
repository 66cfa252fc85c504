// Nodes that share a configuration. What one node does alone is in the conformance suite.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { asWebhook } from '../../../destinations/fixtures/webhook.ts'
import type { Configuration, NewSource } from '../../../model/configuration.ts'
import { createSecretBox, SecretBoxError } from '../../../secrets/secret-box.ts'
import {
  accept,
  counts,
  destinationOf,
  ledgerOf,
  newDestination,
  newSource,
  RecordingConsumer,
  tracks,
  until,
} from '../../conformance/fixtures.ts'
import { suppress, unsuppress } from '../../deletions/deletions.ts'
import { STORED_SECRETS, type Store, type StoredSecret, StoreUnavailable, WriteKeyTaken } from '../../store.ts'
import { type BareNode, type BareNodeOptions, openBareNode } from '../fixtures/bare-node.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import { PostgresUnavailable } from '../session/connection.ts'
import type { Database } from '../session/database.ts'

const source = (change: Partial<NewSource> = {}): NewSource => ({
  name: 'a source',
  enabled: true,
  writeKeys: [randomUUID()],
  requireOAuth: false,
  ...change,
})

const LISTENERS = "FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN switchyard_configuration'"

suite('nodes that share a configuration', () => {
  let database: TestDatabase
  let nodes: BareNode[] = []
  before(async () => {
    database = await createDatabase()
  })
  after(() => database.drop())

  let numbers = 0
  const open = async (options: BareNodeOptions = {}): Promise<BareNode> => {
    const node = await openBareNode(database.url, ++numbers, options)
    nodes.push(node)
    return node
  }
  const twoNodes = async (work: (one: BareNode, other: BareNode) => Promise<void>, options: BareNodeOptions = {}): Promise<void> => {
    try {
      await work(await open(), await open(options))
    } finally {
      for (const node of nodes) await node.close()
      nodes = []
    }
  }
  const listening = async (): Promise<number[]> => (await database.query<{ pid: number }>(`SELECT pid ${LISTENERS}`)).map(({ pid }) => pid)

  test('two nodes that change a destination at the same time make different versions', () =>
    twoNodes(async (one, other) => {
      const { id } = await one.configuring.createDestination(destinationOf())
      await other.sees(({ destinations }) => destinations.has(id))
      const codeOf = (code: string) => ({ transformation: { code, timeoutMs: 50, memoryMb: 8 } })
      const made = await Promise.all(
        Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? one : other).configuring.updateDestination(id, codeOf(`code ${at}`))),
      )
      const byVersion = new Map(made.map((destination) => [destination?.version, asWebhook(destination).transformation?.code]))
      assert.equal(byVersion.size, 20)
      for (const node of [one, other]) {
        const { data } = await node.configuring.destinationVersions(id, { limit: 100, cursor: null })
        assert.deepEqual(
          data.map(({ version }) => version),
          Array.from({ length: 21 }, (_, at) => 21 - at),
        )
        for (const { version, content } of data.slice(0, 20))
          assert.equal((content['transformation'] as { code: string }).code, byVersion.get(version))
      }
      await other.configuring.updateDestination(id, { version: 2 })
      await one.sees(({ destinations }) => destinations.get(id)?.version === 22)
      assert.equal(asWebhook(one.shared.configuration.destinations.get(id)).transformation?.code, byVersion.get(2))
    }))

  test('the other node sees a change, and unchanged objects keep their identity', () =>
    twoNodes(async (one, other) => {
      const kept = await one.configuring.createDestination(destinationOf({ sharedSecret: 'a secret' }))
      const made = await one.configuring.createSource(source())
      const token = await one.configuring.createToken({
        name: 'a\0b',
        role: 'viewer',
        sources: 'all',
        expiresAtMs: null,
        owner: null,
        hash: randomUUID(),
      })
      const app = await one.configuring.createOAuthApp({ name: 'one', sourceIds: [made.id], keys: [], revokedBeforeMs: null })
      await other.sees(({ oauthApps }) => oauthApps.has(app.id))
      const seen = other.shared.configuration
      assert.deepEqual(seen.destinations.get(kept.id), kept)
      assert.deepEqual(seen.tokens.get(token.id), token)
      assert.deepEqual(seen, one.shared.configuration)
      assert.notEqual(other.context.idMap.num('destinations', kept.id), undefined)

      await one.configuring.updateSource(made.id, { enabled: false })
      await other.sees(({ sources }) => sources.get(made.id)?.enabled === false)
      const later = other.shared.configuration
      assert.equal(later.destinations, seen.destinations)
      assert.equal(later.tokens, seen.tokens)
      await one.configuring.updateDestination((await one.configuring.createDestination(destinationOf())).id, { name: 'another' })
      await other.sees(({ destinations }) => [...destinations.values()].some(({ name }) => name === 'another'))
      assert.equal(other.shared.configuration.destinations.get(kept.id), seen.destinations.get(kept.id))
      assert.equal(other.shared.configuration.sources, later.sources)

      await other.configuring.deleteToken(token.id)
      await one.sees(({ tokens }) => !tokens.has(token.id))
      await other.configuring.deleteOAuthApp(app.id)
      await one.sees(({ oauthApps }) => !oauthApps.has(app.id))
      await other.configuring.deleteSource(made.id)
      await one.sees(({ sources }) => !sources.has(made.id))
    }))

  test('a node that misses notifications sees changes when it polls', () =>
    twoNodes(async (one, other) => {
      const before = other.shared.configuration
      await database.query(`SELECT pg_terminate_backend(pid) ${LISTENERS}`)
      const made = await one.configuring.createSource(source())
      await other.shared.refresh()
      assert.ok(other.shared.configuration.sources.has(made.id))
      assert.notEqual(other.shared.configuration, before)
      const now = other.shared.configuration
      await other.shared.refresh()
      assert.equal(other.shared.configuration, now, 'nothing changed since')
    }))

  test('a node whose listening connection was terminated listens again, and reads what it missed', () =>
    twoNodes(async (one, other) => {
      const before = await until(listening, (pids) => pids.length === 2, 'both nodes listen')
      await database.query(`SELECT pg_terminate_backend(pid) ${LISTENERS}`)
      const missed = await one.configuring.createSource(source())
      await other.sees(({ sources }) => sources.has(missed.id))
      await until(listening, (pids) => pids.length === 2 && pids.every((pid) => !before.includes(pid)), 'both nodes listen again')
      const heard = await other.configuring.createSource(source())
      await one.sees(({ sources }) => sources.has(heard.id))
    }))

  test('after a lost connection a node reads everything: the server may be a different one, with other data of the same version', () =>
    twoNodes(async (one, other) => {
      const made = await one.configuring.createSource(source())
      await other.sees(({ sources }) => sources.has(made.id))
      // As after a failover to a standby that lacks the last commits and was changed since.
      await database.query('UPDATE switchyard.sources SET doc = $2, version = 1 WHERE id = $1', [
        made.id,
        JSON.stringify({ ...made, name: 'another' }),
      ])
      await database.query(`SELECT pg_terminate_backend(pid) ${LISTENERS}`)
      for (const node of [one, other]) await node.sees(({ sources }) => sources.get(made.id)?.name === 'another')
    }))

  test('a closed node stops listening', async () => {
    await twoNodes(async () => {
      assert.equal((await listening()).length, 2)
    })
    await until(listening, (pids) => pids.length === 0, 'nobody listens')
  })

  test('if two nodes use the same write key for a new source at the same moment, one of them succeeds', () =>
    twoNodes(async (one, other) => {
      for (let round = 0; round < 10; round++) {
        const writeKeys = [randomUUID()]
        const results = await Promise.allSettled([one, other].map((node) => node.configuring.createSource(source({ writeKeys }))))
        const refused = results.filter((result) => result.status === 'rejected')
        assert.equal(refused.length, 1)
        assert.ok(refused[0]?.reason instanceof WriteKeyTaken)
      }
    }))

  test('a change given as a function sees what another node stored, before this node has read it', () =>
    twoNodes(async (one, other) => {
      const { id } = await one.configuring.createSource(source({ writeKeys: ['first'] }))
      const seen: (readonly string[])[] = []
      for (const [nth, node] of [other, one, other, one].entries()) {
        await node.configuring.updateSource(id, ({ writeKeys }) => {
          seen.push(writeKeys)
          return { writeKeys: [...writeKeys, `key ${nth}`] }
        })
      }
      assert.deepEqual(seen.at(-1), ['first', 'key 0', 'key 1', 'key 2'])
      await other.sees(({ sources }) => sources.get(id)?.writeKeys.length === 5)
    }))

  test('changes of two fields of one destination by two nodes are both kept, and every listener ends with both', () =>
    twoNodes(async (one, other) => {
      const { id } = await one.configuring.createDestination(destinationOf({ sharedSecret: 'a secret' }))
      await other.sees(({ destinations }) => destinations.has(id))
      for (let round = 1; round <= 10; round++) {
        const [name, timeoutMs] = [`name ${round}`, 1_000 + round]
        const [renamed] = await Promise.all([
          one.configuring.updateDestination(id, { name }),
          other.configuring.updateDestination(id, { timeoutMs }),
        ])
        assert.equal(renamed?.name, name)
        for (const node of [one, other]) {
          await node.sees(({ destinations }) => {
            const found = destinations.get(id)
            return found?.name === name && found.timeoutMs === timeoutMs && asWebhook(found).sharedSecret === 'a secret'
          })
        }
      }
    }))

  test('concurrent changes of two nodes reach both, and a change that changes nothing does not increase the version', () =>
    twoNodes(async (one, other) => {
      const made = await Promise.all(Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? one : other).configuring.createSource(source())))
      for (const node of [one, other]) await node.sees(({ sources }) => made.every((each) => sources.has(each.id)))
      assert.deepEqual(one.shared.configuration, other.shared.configuration)
      const [{ version } = { version: 0 }] = await database.query<{ version: string }>('SELECT version FROM switchyard.configuration')
      await one.configuring.updateSource(made[0]?.id ?? '', {})
      assert.deepEqual(await database.query('SELECT version FROM switchyard.configuration'), [{ version }])
    }))

  test('a change whose commit is uncertain is seen after the next refresh', async () => {
    let lost = false
    const wrap = (real: Database): Database =>
      new Proxy(real, {
        get(target, key) {
          const value = Reflect.get(target, key, target) as unknown
          if (key !== 'transaction') return typeof value === 'function' ? (value.bind(target) as unknown) : value
          return async (...given: Parameters<Database['transaction']>) => {
            const result = await target.transaction(...given)
            if (lost && given[1]?.readOnly !== true) throw new PostgresUnavailable('the connection was lost', true)
            return result
          }
        },
      })
    await twoNodes(
      async (_one, other) => {
        lost = true
        const writeKeys = [randomUUID()]
        await assert.rejects(other.configuring.createSource(source({ writeKeys })), { mayHaveCommitted: true })
        lost = false
        await other.shared.refresh()
        const found = [...other.shared.configuration.sources.values()].filter((each) => each.writeKeys.includes(writeKeys[0] as string))
        assert.equal(found.length, 1)
        await assert.rejects(other.configuring.createSource(source({ writeKeys })), WriteKeyTaken)
      },
      { wrap },
    )
  })

  test('a database that was restored to an earlier state is read again completely', () =>
    twoNodes(async (one, other) => {
      const made = await one.configuring.createSource(source())
      await other.sees(({ sources }) => sources.has(made.id))
      await database.query('DELETE FROM switchyard.sources WHERE id = $1', [made.id])
      await database.query('UPDATE switchyard.configuration SET version = version - 1')
      await other.shared.refresh()
      assert.equal(other.shared.configuration.sources.has(made.id), false)
    }))

  test('every node learns of a deleted destination, and knows the row ids of deleted ones after its start', () =>
    twoNodes(async (one, other) => {
      const { id } = await one.configuring.createDestination(destinationOf({ signingSecrets: ['a secret'] }))
      await other.sees(({ destinations }) => destinations.has(id))
      assert.equal(await other.configuring.deleteDestination(id), true)
      await one.sees(({ destinations }) => !destinations.has(id))
      assert.equal(await one.configuring.deleteDestination(id), false)
      assert.deepEqual([one.deleted, other.deleted], [[id], [id]])
      const third = await open()
      assert.equal(third.context.idMap.num('destinations', id), one.context.idMap.num('destinations', id))
      assert.equal(third.shared.configuration.destinations.has(id), false)
      const [row] = await database.query<{ doc: string }>('SELECT doc FROM switchyard.destinations WHERE id = $1', [id])
      assert.deepEqual((JSON.parse(row?.doc ?? '') as { signingSecrets: string[] }).signingSecrets, [])
    }))

  test('a pause reaches the other node, and a destination stored by an earlier version is not paused', () =>
    twoNodes(async (one, other) => {
      const { id } = await one.configuring.createDestination(destinationOf())
      await one.configuring.updateDestination(id, { paused: true })
      await other.sees(({ destinations }) => destinations.get(id)?.paused === true)
      await database.query("UPDATE switchyard.destinations SET doc = (doc::jsonb - 'paused')::text WHERE id = $1", [id])
      const third = await open()
      assert.equal(third.shared.configuration.destinations.get(id)?.paused, false)
      assert.equal((await third.configuring.updateDestination(id, { name: 'another' }))?.paused, false)
    }))

  // ── Suppressions ──

  test('suppressions reach the other node, and those of another source are unchanged', () =>
    twoNodes(async (one, other) => {
      const [first, second] = [await one.configuring.createSource(source()), await one.configuring.createSource(source())]
      const odd = ['u\0', '\ud800', 'back\\slash', '\\u0000', 'plain']
      const added = await one.shared.change((change) => suppress(change, [first.id, second.id], odd, 5))
      assert.equal(added, 10)
      await other.sees(({ suppressions }) => suppressions.has(second.id))
      assert.deepEqual(other.shared.configuration.suppressions.get(first.id), new Set(odd))
      assert.equal(await one.shared.change((change) => suppress(change, [first.id], odd, 6)), 0)

      const before = other.shared.configuration.suppressions
      await one.shared.change((change) => suppress(change, [first.id], ['one more'], 7))
      await other.sees(({ suppressions }) => suppressions.get(first.id)?.has('one more') ?? false)
      assert.equal(other.shared.configuration.suppressions.get(second.id), before.get(second.id))
      assert.equal(await other.shared.change((change) => unsuppress(change, '\\u0000', [second.id])), 1)
      await one.sees(({ suppressions }) => suppressions.get(second.id)?.size === 4)
      assert.equal(await other.shared.change((change) => unsuppress(change, 'plain', null)), 2)
      await one.sees(({ suppressions }) => suppressions.get(second.id)?.size === 3)
      assert.deepEqual(one.shared.configuration, other.shared.configuration)
    }))

  test('a long list of suppressed users is not read again for other changes', () =>
    twoNodes(async (one, other) => {
      const { id } = await one.configuring.createSource(source())
      const num = one.context.idMap.num('sources', id) ?? assert.fail()
      const users = Array.from({ length: 100_000 }, (_, at) => `user-${at}`)
      assert.equal(await one.shared.change((change) => suppress(change, [id], users, 1)), users.length)
      await other.sees(({ suppressions }) => suppressions.get(id)?.size === users.length)
      // If the list were read again, it would lack them.
      await database.query('DELETE FROM switchyard.suppressions WHERE source = $1', [num])
      const made = await one.configuring.createSource(source())
      await other.sees(({ sources }) => sources.has(made.id))
      await one.shared.change((change) => suppress(change, [id], ['one more'], 1))
      await other.sees(({ suppressions }) => suppressions.get(id)?.has('one more') ?? false)
      for (const node of [one, other]) assert.equal(node.shared.configuration.suppressions.get(id)?.size, users.length + 1)
    }))

  // ── Secrets and assertions ──

  test('if two nodes store the same secret or use the same assertion at the same moment, one of them succeeds', () =>
    twoNodes(async (one, other) => {
      for (const name of Object.keys(STORED_SECRETS) as StoredSecret[]) {
        const secrets = await Promise.all([one, other].map((node, at) => node.configuring.getOrCreate(name, `secret ${at}`)))
        assert.equal(new Set(secrets).size, 1)
        const assertion = { appId: 'app', jti: `jti\0${name}`, keepUntilMs: 10_000 }
        const uses = await Promise.all([one, other, one, other].map((node) => node.settings.useAssertion(assertion, 1)))
        assert.equal(uses.filter(Boolean).length, 1)
      }
    }))

  test('a node with the previous key keeps using what it has read, rejects changes, and reports why', async () => {
    const own = await createDatabase()
    const [one, other] = [await openBareNode(own.url, 1), await openBareNode(own.url, 2)]
    try {
      const kept = await one.configuring.createDestination(destinationOf({ sharedSecret: 'a secret' }))
      await other.sees(({ destinations }) => destinations.has(kept.id))
      const known = other.shared.configuration.destinations.get(kept.id)
      await one.configuring.rotateKey(createSecretBox('another key'))
      await one.configuring.updateDestination(kept.id, { name: 'renamed' })
      const made = await one.configuring.createSource(source())
      await other.sees(({ sources }) => sources.has(made.id))
      await other.shared.refresh()
      assert.equal(other.shared.configuration.destinations.get(kept.id), known)
      assert.match(other.shared.problem ?? '', /encrypted with key/)
      assert.equal(one.shared.problem, null)
      await assert.rejects(other.configuring.createSource(source()), StoreUnavailable)
      await assert.rejects(other.configuring.getOrCreate('session_key', 'x'), StoreUnavailable)
      await assert.rejects(openBareNode(own.url, 3), SecretBoxError)
      const third = await openBareNode(own.url, 3, { secretBox: createSecretBox('another key') })
      assert.equal(asWebhook(third.shared.configuration.destinations.get(kept.id)).sharedSecret, 'a secret')
      await third.close()
      await until(
        () => own.query<{ pid: number }>(`SELECT pid ${LISTENERS}`),
        (rows) => rows.length === 2,
        'the rejected node has left',
      )
    } finally {
      await one.close()
      await other.close()
      await own.drop()
    }
  })
})

suite('stores that share a configuration', () => {
  const sees = (store: Store, wanted: (configuration: Configuration) => boolean): Promise<void> =>
    new Promise((resolve) => {
      if (wanted(store.configuration())) return resolve()
      store.onConfiguration((configuration) => wanted(configuration) && resolve())
    })

  test('what one node accepts while another deletes the destination is cancelled, and the ledger matches its recount', async () => {
    const database = await createDatabase()
    const stores = [await openAt(database.url), await openAt(database.url)] as const
    const [one, other] = stores
    try {
      const { id: sourceId } = await newSource(one)
      const { id: destinationId } = await newDestination(one, sourceId)
      const consumer = new RecordingConsumer()
      other.delivery.attach(consumer)
      await sees(other, ({ destinations }) => destinations.has(destinationId))
      // The accepting node holds half of the shipments, like those that it would deliver at once.
      const accepting = Array.from({ length: 60 }, (_, at) => {
        consumer.reserves = at % 2 === 0
        return accept(other, sourceId, tracks(5), [destinationId])
      })
      await accepting[0]
      const deleting = one.resources.deleteDestination(destinationId)
      for (let at = 0; at < 60; at++) {
        consumer.reserves = at % 2 === 0
        await accept(other, sourceId, tracks(5), [destinationId])
      }
      assert.equal(await deleting, true)
      await Promise.all(accepting)
      await sees(other, ({ destinations }) => !destinations.has(destinationId))
      other.delivery.release(consumer.received.map(({ shipment }) => shipment))
      const pending = async (): Promise<number | undefined> =>
        (await other.books.ledger()).find((row) => row.destinationId === destinationId)?.pending
      await until(pending, (count) => count === 0, 'everything is cancelled')
      const ledger = await ledgerOf(other, destinationId)
      assert.ok(ledger.owed > 0 && ledger.owed <= 600)
      assert.deepEqual(ledger, counts({ owed: ledger.owed, cancelled: ledger.owed }))
      for (const store of stores) assert.deepEqual(await store.books.recount(), await store.books.ledger())
    } finally {
      for (const store of stores) await store.close()
      await database.drop()
    }
  })

  test('a store learns of changes within a second, also after its connections were terminated', async () => {
    const database = await createDatabase()
    const stores = [await openAt(database.url), await openAt(database.url)] as const
    const [one, other] = stores
    try {
      for (let round = 0; round < 3; round++) {
        const { id } = await newSource(one)
        await sees(other, ({ sources }) => sources.has(id))
        await database.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'",
        )
      }
    } finally {
      for (const store of stores) await store.close()
      await database.drop()
    }
  })
})
