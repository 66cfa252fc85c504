// A third kind of destination in the service is one folder and one entry, added to a copy of the sources. Without the entry, the compiler names
// the registry and nothing else. With it, everything compiles, and the kind is created, shown, sent to, retried, replayed, previewed,
// tested, diagnosed, exported and applied.

import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { promisify } from 'node:util'
import type * as AppModule from '../../packages/server/src/app.ts'
import { readConfig } from '../../packages/server/src/config.ts'
import { createLog } from '../../packages/server/src/logging/log.ts'
import { newStoreLocation, type StoreLocation } from '../../packages/server/src/store/fixtures/test-store.ts'
import { callControl, TOKEN } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

const repository = join(import.meta.dirname, '..', '..')
const copy = mkdtempSync(join(tmpdir(), 'switchyard-third-kind-'))
const server = join(copy, 'packages', 'server')
const registry = join(server, 'src', 'destinations', 'kinds.ts')

suite('a third kind of destination', () => {
  let place: StoreLocation
  let app: Awaited<ReturnType<typeof AppModule.createApp>>
  const api = <T>(path: string, body?: unknown, method = body === undefined ? 'GET' : 'POST'): Promise<T> =>
    callControl<T>(app.url, TOKEN, path, { method, body })

  before(async () => {
    place = await newStoreLocation()
    mkdirSync(server, { recursive: true })
    cpSync(join(repository, 'packages/server/src'), join(server, 'src'), {
      recursive: true,
      filter: (path) => !/\.test\.ts$|[\\/](fixtures|conformance)$/.test(path),
    })
    cpSync(join(repository, 'packages/server/package.json'), join(server, 'package.json'))
    symlinkSync(join(repository, 'node_modules'), join(copy, 'node_modules'))
    // What npm has put into the folder of the package, because others need another version of it.
    const own = join(repository, 'packages/server/node_modules')
    if (existsSync(own)) symlinkSync(own, join(server, 'node_modules'))
    const tsconfig = { extends: join(repository, 'tsconfig.json'), include: ['packages/server/src'], exclude: ['node_modules'] }
    writeFileSync(join(copy, 'tsconfig.json'), JSON.stringify(tsconfig))
    // It is no source of this repository, because its types are those of the copy.
    cpSync(join(import.meta.dirname, 'sink.ts.txt'), join(server, 'src/destinations/sink/sink.ts'))
  })
  after(async () => {
    await app?.close()
    await place.remove()
    rmSync(copy, { recursive: true, force: true })
  })

  test('is one folder and one entry, and without the entry the compiler names the registry', () => {
    assert.deepEqual([...new Set(compilerErrors().map((error) => error.split('(')[0]))], ['packages/server/src/destinations/kinds.ts'])
    enter()
    assert.deepEqual(compilerErrors(), [])
  })

  test('is created, shown by the command line, sent to, retried, replayed, previewed, tested, diagnosed, exported and applied', async () => {
    enter()
    const { createApp } = (await import(join(server, 'src', 'app.ts'))) as typeof AppModule
    const read = readConfig({ SWITCHYARD_PORT: '0', SWITCHYARD_ADMIN_TOKEN: TOKEN, ...place.env })
    assert.equal(read.kind, 'config')
    if (read.kind !== 'config') return
    app = await createApp(read.config, createLog('silent'))
    const counts = new Map<string, number>()
    const told = new BroadcastChannel('counts of sinks')
    told.onmessage = ({ data }) => {
      const [counter, count] = data as [string, number]
      counts.set(counter, count)
    }
    after(() => told.close())

    const source = await api<{ id: string; writeKeys: string[] }>('/sources', { name: 'Shop' })
    const settings = { type: 'sink', name: 'Counter', counter: 'all', sourceIds: [source.id] }
    await assert.rejects(
      api('/destinations', { ...settings, urls: ['https://x.example/'] }),
      /is a setting of webhooks, and this destination is a sink/,
    )
    const retry = { initialMs: 100, maxMs: 100 }
    const { id } = await api<{ id: string }>('/destinations', { ...settings, failures: 1, retry })
    await assert.rejects(api('/destinations', settings), /the same counter/)
    const shown = await api<Record<string, unknown>>(`/destinations/${id}`)
    assert.deepEqual([shown['type'], shown['counter'], shown['failures'], shown['timeoutMs']], ['sink', 'all', 1, 1_000])

    assert.match(await switchyard('destinations', 'show', id), /^sources +\S+\ncounter +all\nfailures +1\nbatch +off$/m)
    assert.match(await switchyard('destinations', 'list'), /^\S+ +Counter +.* all$/m)

    const batch = [1, 2, 3].map((n) => ({ type: 'track', event: 'Counted', userId: 'u', messageId: `m-${n}` }))
    const authorization = `Basic ${Buffer.from(`${source.writeKeys[0]}:`).toString('base64')}`
    const response = await fetch(`${app.url}/v1/batch`, { method: 'POST', headers: { authorization }, body: JSON.stringify({ batch }) })
    assert.equal(response.status, 200)
    await eventually(
      async () => counts.get('all'),
      (count) => count === 3,
    )
    const ledger = (): Promise<{ data: { delivered: number }[] }> => api('/ledger')
    await eventually(ledger, ({ data }) => data[0]?.delivered === 3)
    const { data: deliveries } = await api<{ data: { attemptCount: number }[] }>(`/deliveries?destinationId=${id}`)
    const repeated = deliveries.filter(({ attemptCount }) => attemptCount === 2)
    assert.deepEqual([deliveries.length, repeated.length], [3, 1], 'the first attempt failed, and was repeated')

    await api('/replays', { destinationId: id, states: ['delivered'] })
    await eventually(
      async () => counts.get('all'),
      (count) => count === 6,
    )

    const message = { type: 'track', event: 'Counted', userId: 'u' }
    const { summary } = await api<{ summary: { sent: number } }>(`/destinations/${id}/preview`, { message })
    assert.deepEqual([summary.sent, counts.get('all')], [1, 6], 'a preview counts nothing')
    assert.match(await switchyard('destinations', 'test', id), /^Test passed\.$/m)
    const { checks } = await api<{ checks: { destinationId: string | null; name: string; state: string }[] }>('/diagnostics')
    const own = checks.filter(({ destinationId }) => destinationId === id)
    assert.deepEqual(
      own.map(({ name, state }) => [name, state]),
      [['destination', 'good']],
    )

    const file = join(copy, 'configuration.yaml')
    await switchyard('export', file)
    const exported = readFileSync(file, 'utf8')
    assert.match(exported, /type: sink/)
    assert.match(exported, /counter: all/)
    assert.doesNotMatch(exported, /urls|subscriptions|timeoutMs/)
    writeFileSync(file, exported.replace('counter: all', 'counter: other'))
    await switchyard('apply', file)
    assert.equal((await api<{ counter: string }>(`/destinations/${id}`)).counter, 'other')
  })

  async function switchyard(...args: string[]): Promise<string> {
    const env = { ...process.env, SWITCHYARD_URL: app.url, SWITCHYARD_TOKEN: TOKEN }
    return (await promisify(execFile)(process.execPath, [join(server, 'src', 'cli.ts'), ...args], { env })).stdout
  }
})

/** Adds the entry to the registry, unless it is there. */
function enter(): void {
  const text = readFileSync(registry, 'utf8')
  if (text.includes('sink: SINK')) return
  const entered = text
    .replace(/^import \{ WEBHOOK \}.*$/m, (line) => `import { SINK } from './sink/sink.ts'\n${line}`)
    .replace('webhook: WEBHOOK,', 'webhook: WEBHOOK,\n  sink: SINK,')
  assert.match(entered, /sink: SINK/)
  writeFileSync(registry, entered)
}

function compilerErrors(): string[] {
  try {
    execFileSync(process.execPath, [join(repository, 'node_modules/typescript/lib/tsc.js'), '-p', copy, '--pretty', 'false'], { cwd: copy })
    return []
  } catch (error) {
    return String((error as { stdout: Buffer }).stdout)
      .split('\n')
      .filter((line) => /^\S.*error TS/.test(line))
  }
}
