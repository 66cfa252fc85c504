// Concurrent changes of the configuration: on two nodes that share a PostgreSQL database, and on one service with SQLite. Every
// acknowledged change must be there afterwards, and what was removed must stay removed.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { apply } from '../../packages/server/src/commands/configuration/apply.ts'
import { type Call, type Command, CommandProblem } from '../../packages/server/src/commands/line/command.ts'
import { createOutput } from '../../packages/server/src/commands/line/output.ts'
import { DESTINATION_COMMANDS } from '../../packages/server/src/commands/resources/destinations.ts'
import { createApi } from '../../packages/server/src/commands/service/api.ts'
import { startInProcess } from '../system/in-process.ts'
import { startCluster } from '../system/nodes-in-process.ts'
import { callControl, TOKEN } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

const folder = mkdtempSync(join(tmpdir(), 'switchyard-concurrent-'))
after(() => rmSync(folder, { recursive: true, force: true }))

type Api = <T = unknown>(path: string, init?: { method?: string; body?: unknown }) => Promise<T>

interface Pair extends AsyncDisposable {
  /** The same for the second node. */
  url: string
  /** Two APIs with the same configuration: those of two nodes, or twice the one of a service. */
  one: Api
  other: Api
}

interface Source {
  id: string
  writeKeys: string[]
}

/** The fields that these tests look at. */
interface Shown extends Source {
  name: string
  keys: { id: string }[]
  tokensRevokedBefore: string | null
  batch: { size: number; lingerMs: number }
  headers: object
  maxInFlight: number
}

function apiOf(url: string): Api {
  return (path, init) => callControl(url, TOKEN, path, init)
}

async function twoNodes(): Promise<Pair> {
  const cluster = await startCluster({ nodes: 2 })
  const [one, other] = cluster.nodes.map(({ url }) => apiOf(url)) as [Api, Api]
  const url = cluster.nodes[1]?.url ?? ''
  return { url, one, other, [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose]() }
}

async function oneService(): Promise<Pair> {
  const service = await startInProcess()
  return {
    url: service.url,
    one: apiOf(service.url),
    other: apiOf(service.url),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

/** Waits until both sides show it as wanted. */
async function settled({ one, other }: Pair, path: string, isWanted: (seen: Shown) => boolean): Promise<void> {
  const ask = (api: Api): Promise<Shown | undefined> => api<Shown>(path).catch(() => undefined)
  for (const api of [one, other])
    await eventually(
      () => ask(api),
      (seen) => seen !== undefined && isWanted(seen),
      { deadlineMs: 15_000 },
    )
}

const times = <T>(count: number, make: (nth: number) => T): T[] => Array.from({ length: count }, (_, nth) => make(nth))

/** Asserts that the call is refused with this code. */
async function refused(call: Promise<unknown>, code: string): Promise<void> {
  await assert.rejects(call, (error: Error) => error.message.includes(`"${code}"`) || assert.fail(error.message))
}

/** Runs a command, and makes another change as soon as it has read `path`. Returns its output. */
async function ran(
  command: Command | undefined,
  given: { url: string; arguments: string[]; flags: Record<string, string[]> },
  [path, meanwhile]: [path: string, meanwhile: () => Promise<unknown>],
): Promise<string> {
  const { signal } = new AbortController()
  const api = createApi({ url: given.url, token: TOKEN, signal })
  const original = { get: api.get.bind(api), post: api.post.bind(api) }
  const said: string[] = []
  const stream = { write: (text: string) => said.push(text) }
  const interrupted = async (to: string, answering: Promise<JsonObject>): Promise<JsonObject> => {
    const answer = await answering
    if (to === path) await meanwhile()
    return answer
  }
  const flags = (name: string): string[] => given.flags[name] ?? []
  const call: Call = {
    arguments: given.arguments,
    flag: (name) => flags(name).at(-1),
    flags,
    has: (name) => given.flags[name] !== undefined,
    json: false,
    ask: null,
    env: {},
    api: Object.assign(api, {
      get: (...args: Parameters<typeof original.get>) => interrupted(args[0], original.get(...args)),
      post: (...args: Parameters<typeof original.post>) => interrupted(args[0], original.post(...args)),
    }),
    out: createOutput({ stdout: stream, stderr: stream, json: false, colours: false }),
    signal,
  }
  try {
    await command?.run(call)
    return said.join('')
  } catch (error) {
    if (!(error instanceof CommandProblem)) throw error
    return error.message
  }
}

/** Runs `switchyard apply`, and makes another change after it has read and planned, and before it changes anything. */
function applied(url: string, file: object, flags: Record<string, string[]>, meanwhile: () => Promise<unknown>): Promise<string> {
  const path = join(folder, 'switchyard.yaml')
  writeFileSync(path, JSON.stringify({ version: 1, ...file }))
  return ran(apply, { url, arguments: [path], flags }, ['/api/configuration/check', meanwhile])
}

for (const [name, start] of [
  ['two nodes on PostgreSQL', twoNodes],
  ['one service', oneService],
] as const) {
  describe(`changes at the same moment on ${name}`, () => {
    let pair: Pair
    before(async () => {
      pair = await start()
    })
    after(() => pair[Symbol.asyncDispose]())

    test('twenty write keys that were added are all there', async () => {
      const { id, writeKeys } = await pair.one<Source>('/sources', { method: 'POST', body: { name: 'adding' } })
      await settled(pair, `/sources/${id}`, () => true)
      const answers = await Promise.all(
        times(20, (nth) => (nth % 2 ? pair.one : pair.other)<{ key: string }>(`/sources/${id}/write-keys`, { method: 'POST', body: {} })),
      )
      const added = answers.map(({ key }) => key)
      await settled(pair, `/sources/${id}`, (source) => source.writeKeys.length === 21)
      const now = (await pair.other<Source>(`/sources/${id}`)).writeKeys
      assert.deepEqual(new Set(now), new Set([...writeKeys, ...added]))
    })

    test('ten write keys that were removed stay removed while others are added', async () => {
      const old = times(10, (nth) => `old-${nth}`)
      const { id } = await pair.one<Source>('/sources', { method: 'POST', body: { name: 'removing', writeKeys: ['kept', ...old] } })
      await settled(pair, `/sources/${id}`, () => true)
      await Promise.all(
        times(10, (nth) => [
          pair.one(`/sources/${id}/write-keys/old-${nth}`, { method: 'DELETE' }),
          pair.other(`/sources/${id}/write-keys`, { method: 'POST', body: { key: `new-${nth}` } }),
        ]).flat(),
      )
      await settled(pair, `/sources/${id}`, ({ writeKeys }) => writeKeys.includes('new-9') && writeKeys.length === 11)
      const { writeKeys } = await pair.one<Source>(`/sources/${id}`)
      assert.deepEqual(new Set(writeKeys), new Set(['kept', ...times(10, (nth) => `new-${nth}`)]))
    })

    test('when two clients each remove one of the last two write keys, one of them is refused', async () => {
      const { id } = await pair.one<Source>('/sources', { method: 'POST', body: { name: 'the last', writeKeys: ['first', 'second'] } })
      await settled(pair, `/sources/${id}`, () => true)
      const results = await Promise.allSettled([
        pair.one(`/sources/${id}/write-keys/first`, { method: 'DELETE' }),
        pair.other(`/sources/${id}/write-keys/second`, { method: 'DELETE' }),
      ])
      const [failed] = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as Error] : []))
      assert.match(failed?.message ?? '', /last_write_key/)
      await settled(pair, `/sources/${id}`, ({ writeKeys }) => writeKeys.length === 1)
    })

    test('a limit holds for both sides together', async () => {
      const writeKeys = times(95, (nth) => `key-${nth}`)
      const { id } = await pair.one<Source>('/sources', { method: 'POST', body: { name: 'limited', writeKeys } })
      await settled(pair, `/sources/${id}`, () => true)
      const results = await Promise.allSettled(
        times(12, (nth) => (nth % 2 ? pair.one : pair.other)(`/sources/${id}/write-keys`, { method: 'POST', body: {} })),
      )
      const reasons = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []))
      assert.deepEqual([reasons.length, reasons.every((reason) => reason.includes('too_many_write_keys'))], [7, true], reasons.join('\n'))
      await settled(pair, `/sources/${id}`, (source) => source.writeKeys.length === 100)
    })

    test('keys of an OAuth application are added and removed at the same time, and its revocation is kept', async () => {
      const publicKeyPem = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString()
      const keys = times(8, (nth) => ({ id: `old-${nth}`, publicKeyPem }))
      const { id } = await pair.one<{ id: string }>('/oauth-apps', { method: 'POST', body: { name: 'app', keys } })
      await settled(pair, `/oauth-apps/${id}`, () => true)
      await Promise.all([
        ...times(8, (nth) => pair.one(`/oauth-apps/${id}/keys/old-${nth}`, { method: 'DELETE' })),
        ...times(8, (nth) => pair.other(`/oauth-apps/${id}/keys`, { method: 'POST', body: { id: `new-${nth}`, publicKeyPem } })),
        pair.one(`/oauth-apps/${id}/revoke-tokens`, { method: 'POST' }),
        pair.other(`/oauth-apps/${id}`, { method: 'PATCH', body: { name: 'renamed' } }),
      ])
      const wanted = times(8, (nth) => `new-${nth}`)
      await settled(
        pair,
        `/oauth-apps/${id}`,
        ({ keys: now, name: title, tokensRevokedBefore }) =>
          title === 'renamed' && tokensRevokedBefore !== null && JSON.stringify(now.map((key) => key.id).sort()) === JSON.stringify(wanted),
      )
    })

    test('concurrent changes of different fields of a destination are both applied, also within batch', async () => {
      const body = { name: 'orders', urls: ['https://example.com/'] }
      const { id } = await pair.one<{ id: string }>('/destinations', { method: 'POST', body })
      await settled(pair, `/destinations/${id}`, () => true)
      for (let round = 1; round <= 5; round++) {
        await Promise.all([
          pair.one(`/destinations/${id}`, { method: 'PATCH', body: { batch: { size: round } } }),
          pair.other(`/destinations/${id}`, { method: 'PATCH', body: { batch: { lingerMs: round } } }),
          pair.one(`/destinations/${id}`, { method: 'PATCH', body: { headers: { 'X-Round': String(round) } } }),
          pair.other(`/destinations/${id}`, { method: 'PATCH', body: { maxInFlight: round } }),
        ])
        await settled(
          pair,
          `/destinations/${id}`,
          ({ batch, headers, maxInFlight }) =>
            JSON.stringify([batch.size, batch.lingerMs, headers, maxInFlight]) ===
            JSON.stringify([round, round, { 'X-Round': String(round) }, round]),
        )
      }
    })

    test('apply does not overwrite changes that were made after it read, and says so; the next run works', async () => {
      const made = { name: 'applied', writeKeys: ['applied-1'] }
      const { id } = await pair.one<Source>('/sources', { method: 'POST', body: made })
      await settled(pair, `/sources/${id}`, () => true)
      const file = { sources: [{ name: 'applied', writeKeys: ['applied-1', 'applied-2'] }] }
      const adding = (): Promise<unknown> => pair.one(`/sources/${id}/write-keys`, { method: 'POST', body: { key: 'applied-3' } })
      const said = await applied(pair.url, file, {}, adding)
      assert.match(
        said,
        /^update source applied failed: The resource was changed after you read it.*\(changed_since_read\)\nNothing was changed\./,
      )
      assert.match(said, /You can apply the same file again/)
      await settled(pair, `/sources/${id}`, ({ writeKeys }) => writeKeys.join() === 'applied-1,applied-3')
      assert.match(await applied(pair.url, file, {}, async () => {}), /Applied 1 change/)
      await settled(pair, `/sources/${id}`, ({ writeKeys }) => writeKeys.join() === 'applied-1,applied-2')
    })

    test('apply does not create a second entry if somebody else created one of that name after it read', async () => {
      const destination = { name: 'made at once', urls: ['https://example.com/'] }
      const making = (): Promise<unknown> => pair.one('/destinations', { method: 'POST', body: destination })
      const said = await applied(pair.url, { destinations: [destination] }, {}, making)
      assert.match(said, /^create destination made at once failed: .*\(name_taken\)\nNothing was changed\./)
      const { data } = await pair.one<{ data: { name: string }[] }>('/destinations?limit=1000')
      assert.equal(data.filter((known) => known.name === destination.name).length, 1)
    })

    test('apply --prune deletes nothing that was changed after it read', async () => {
      const body = { name: 'pruned', urls: ['https://example.com/'] }
      const { id } = await pair.one<{ id: string }>('/destinations', { method: 'POST', body })
      await settled(pair, `/destinations/${id}`, () => true)
      const changing = (): Promise<unknown> =>
        pair.one(`/destinations/${id}`, { method: 'PATCH', body: { urls: ['https://example.com/taken-over'] } })
      const { data: sources } = await pair.other<{ data: { name: string }[] }>('/sources?limit=1000')
      const file = { sources: sources.map((source) => ({ name: source.name })) }
      const said = await applied(pair.url, file, { prune: [] }, changing)
      assert.match(said, /^delete destination pruned failed: .*\(changed_since_read\)/)
      assert.ok(await pair.one(`/destinations/${id}`))
    })

    test('a command that adds a header does not remove a header that somebody else has just added', async () => {
      const body = { name: 'headers', urls: ['https://example.com/'] }
      const { id } = await pair.one<{ id: string }>('/destinations', { method: 'POST', body })
      await settled(pair, `/destinations/${id}`, () => true)
      const update = DESTINATION_COMMANDS.find(({ name: command }) => command === 'destinations update')
      const mine = { url: pair.url, arguments: [id], flags: { header: ['X-Mine:1'] } }
      const adding = (): Promise<unknown> => pair.one(`/destinations/${id}`, { method: 'PATCH', body: { headers: { 'X-Other': '2' } } })
      assert.match(await ran(update, mine, [`/api/destinations/${id}`, adding]), /\(changed_since_read\)$/)
      await settled(pair, `/destinations/${id}`, ({ headers }) => JSON.stringify(headers) === '{"X-Other":"2"}')
      await ran(update, mine, ['', async () => {}])
      await settled(pair, `/destinations/${id}`, ({ headers }) => JSON.stringify(headers) === '{"X-Other":"2","X-Mine":"1"}')
    })

    test('a node can change, use and delete what another node has just created, before it is notified', async () => {
      const { id } = await pair.one<Source>('/sources', { method: 'POST', body: { name: 'fresh' } })
      const destination = { name: 'fresh', urls: ['https://example.com/'], sourceIds: [id] }
      const made = await pair.other<{ id: string }>('/destinations', { method: 'POST', body: destination })
      const app = await pair.one<{ id: string }>('/oauth-apps', { method: 'POST', body: { name: 'app', sourceIds: [id] } })
      await pair.other(`/oauth-apps/${app.id}`, { method: 'PATCH', body: { sourceIds: [id] } })
      await pair.other('/suppressions', { method: 'POST', body: { userIds: ['u'], sourceIds: [id] } })
      // A second destination of this name would send every message twice, also if the other node created the first one.
      await refused(pair.one('/destinations', { method: 'POST', body: destination }), 'destination_exists')
      const changed = await pair.other<{ id: string }>('/destinations', { method: 'POST', body: { ...destination, name: 'changed' } })
      await pair.one(`/destinations/${changed.id}`, { method: 'PATCH', body: { paused: true } })
      const plan = await pair.one<{ id: string }>('/plans', { method: 'POST', body: { name: 'plan', rules: [] } })
      await pair.other(`/plans/${plan.id}`, { method: 'PATCH', body: { rules: [{ type: 'page', schema: {} }] } })
      const token = await pair.one<{ id: string }>('/tokens', { method: 'POST', body: { name: 'token' } })
      await pair.other(`/tokens/${token.id}`, { method: 'DELETE' })
      await pair.one(`/destinations/${made.id}`, { method: 'DELETE' })
      await pair.other(`/oauth-apps/${app.id}`, { method: 'DELETE' })
      await pair.one(`/sources/${id}`, { method: 'DELETE' })
      // What one node deletes is deleted for the other at once.
      await refused(pair.other('/destinations', { method: 'POST', body: destination }), 'invalid_field')
      await refused(pair.other('/oauth-apps', { method: 'POST', body: { name: 'app', sourceIds: [id] } }), 'invalid_field')
      await refused(pair.other('/suppressions', { method: 'POST', body: { userIds: ['u'], sourceIds: [id] } }), 'invalid_field')
      await refused(pair.other('/deletions', { method: 'POST', body: { userIds: ['u'], sourceIds: [id] } }), 'invalid_field')
      await refused(pair.other(`/sources/${id}`, { method: 'PATCH', body: { name: 'again' } }), 'source_not_found')
      await refused(pair.other(`/sources/${id}/write-keys`, { method: 'POST', body: {} }), 'source_not_found')
    })
  })
}
