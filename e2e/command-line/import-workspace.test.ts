// `switchyard import-workspace` against a real service with the real catalogue: an export in the documented format of Segment's Public API
// becomes sources, destinations and subscriptions; what cannot be imported is listed; a second run creates nothing.

import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { promisify } from 'node:util'
import {
  destinationOf,
  exportedWorkspace,
  filterOf,
  pageOf,
  sourceOf,
  subscriptionOf,
} from '../../packages/server/src/commands/workspace/fixtures/exported-workspace.ts'
import { parseWorkspace } from '../../packages/server/src/commands/workspace/workspace-export.ts'
import { blocksOf, ROOT } from '../documentation/documentation.ts'
import { says, switchyard, switchyardWith } from '../system/command-line.ts'
import { type Service, startService } from '../system/service.ts'

interface Listed {
  name: string
  outcome: string
  reason: string | null
  notes: string[]
}
interface Report {
  dryRun: boolean
  sources: (Listed & { id: string | null; writeKeys: string[] })[]
  destinations: (Listed & { missingSecrets: string[]; subscriptions: (Listed & { action: string })[] })[]
  others: { part: string; count: number }[]
  secrets: Record<string, object>
}

let service: Service
let folder: string
before(async () => {
  service = await startService()
  folder = mkdtempSync(join(tmpdir(), 'switchyard-workspace-'))
})
after(async () => {
  await service[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

function saved(name: string, value: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value))
  return path
}

async function run(...args: string[]): Promise<{ code: number | null; report: Report; stderr: string }> {
  const { code, stdout, stderr } = await switchyard(service, 'import-workspace', ...args, '--json')
  return { code, report: JSON.parse(stdout) as Report, stderr }
}

const outcomes = (listed: readonly Listed[]): Record<string, string> =>
  Object.fromEntries(listed.map(({ name, outcome }) => [name, outcome]))
const names = async (path: string): Promise<string[]> =>
  (await service.api<{ data: { name: string }[] }>(path)).data.map(({ name }) => name)

/** With the write key of the workspace: clients have to change only the host. */
async function send(message: object): Promise<void> {
  const { status } = await fetch(`${service.url}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from('key-of-web_shop:').toString('base64')}`, 'content-type': 'application/json' },
    body: JSON.stringify(message),
  })
  assert.equal(status, 200)
}

suite('import-workspace', { concurrency: false }, () => {
  test('a dry run lists everything of the export and changes nothing', async () => {
    const before = [await names('/sources'), await names('/destinations')]
    const { code, report } = await run(saved('workspace.json', exportedWorkspace()), '--dry-run')
    assert.equal(code, 5)
    assert.deepEqual(outcomes(report.sources), { 'Web shop': 'create', App: 'create', stripe: 'not_supported' })
    assert.deepEqual(outcomes(report.destinations), {
      Slack: 'create',
      'Amplitude (Actions)': 'needs_secrets',
      HubSpot: 'needs_secrets',
      Attio: 'needs_secrets',
      'Universal Analytics': 'not_supported',
      Fullstory: 'not_supported',
      'Brand new': 'not_supported',
      Payments: 'not_supported',
    })
    const [slack] = report.destinations
    assert.deepEqual(
      slack?.subscriptions.map(({ name, outcome }) => [name, outcome]),
      [
        ['Orders', 'create'],
        ['Broken trigger', 'not_supported'],
      ],
    )
    assert.match(slack?.subscriptions[1]?.reason ?? '', /^subscribe is not a valid expression/)
    assert.deepEqual(
      report.others.map(({ part, count }) => [part, count]),
      [['warehouses', 1]],
    )
    assert.deepEqual(Object.keys(report.secrets), ['Amplitude (Actions)', 'HubSpot', 'Attio'])
    assert.deepEqual([await names('/sources'), await names('/destinations')], before)
  })

  test('a run creates what it can, with the write keys; the next one, with secrets, the rest; a third nothing', async () => {
    const file = saved('workspace.json', exportedWorkspace())
    const first = await run(file)
    assert.equal(first.code, 1, 'something is not imported')
    assert.deepEqual([outcomes(first.report.sources)['Web shop'], outcomes(first.report.destinations)['Slack']], ['created', 'created'])
    const { data: sources } = (await service.api('/sources')) as {
      data: { id: string; name: string; enabled: boolean; writeKeys: string[] }[]
    }
    const shop = sources.find(({ name }) => name === 'Web shop')
    assert.deepEqual(shop?.writeKeys, ['key-of-web_shop'])
    assert.equal(sources.find(({ name }) => name === 'App')?.enabled, false)
    await send({ userId: 'u', event: 'Opened' })

    const { data: imported } = await service.api<{ data: { id: string; name: string; aliases: string[] }[] }>('/destinations')
    const slack = imported.find(({ name }) => name === 'Slack')
    assert.deepEqual(slack?.aliases, ['Slack (Actions)', 'Actions Slack'])
    for (const name of ['Slack', 'Slack (Actions)', 'Actions Slack']) {
      const userId = `without consent to ${name}`
      await send({ userId, event: 'Order Completed', integrations: { [name]: false } })
      const { data } = await service.api<{ data: { skips: { destinationId: string; reason: string }[]; deliveries: unknown[] }[] }>(
        `/messages?userId=${encodeURIComponent(userId)}`,
      )
      assert.deepEqual(
        [data[0]?.deliveries, data[0]?.skips.map(({ destinationId, reason }) => [destinationId, reason])],
        [[], [[slack?.id, 'integrations_disabled']]],
        name,
      )
    }

    const { data: plans } = await service.api<{ data: { name: string; sourceIds: string[]; rules: { event: string; mode: string }[] }[] }>(
      '/plans',
    )
    assert.deepEqual(
      plans.map(({ name, sourceIds, rules }) => [name, sourceIds, rules.map(({ event, mode }) => [event, mode])]),
      [['Shop plan', [shop?.id], [['Order Completed', 'observe']]]],
    )
    await send({ userId: 'internal', event: 'Internal Order' })
    const { data: held } = await service.api<{ data: { skips: { destinationId: string; rule: string }[]; deliveries: unknown[] }[] }>(
      '/messages?userId=internal',
    )
    assert.deepEqual([held[0]?.deliveries, held[0]?.skips[0]?.rule], [[], 'conditional_filter'])

    const secrets = saved('secrets.yaml', 'Amplitude (Actions):\n  apiKey: env:AMPLITUDE_KEY\n  secretKey: s3cret-of-amplitude\n')
    const env = { AMPLITUDE_KEY: 'k3y-of-amplitude' }
    const second = await switchyardWith(env, service, 'import-workspace', file, '--secrets', secrets, '--json')
    const report = JSON.parse(second.stdout) as Report
    assert.deepEqual([outcomes(report.destinations)['Slack'], outcomes(report.destinations)['Amplitude (Actions)']], ['exists', 'created'])
    assert.doesNotMatch(second.stdout + second.stderr, /k3y-of|s3cret-of/)
    const { data: destinations } = (await service.api('/destinations')) as {
      data: {
        name: string
        type: string
        integration: string
        sourceIds: string[]
        settings: Record<string, unknown>
        subscriptions: { name: string; action: string; subscribe: string; mapping: object; enabled: boolean }[]
      }[]
    }
    const amplitude = destinations.find(({ name }) => name === 'Amplitude (Actions)')
    assert.deepEqual([amplitude?.type, amplitude?.integration, amplitude?.sourceIds], ['integration', 'actions-amplitude', [shop?.id]])
    assert.equal(amplitude?.settings['endpoint'], 'europe')
    assert.deepEqual(
      amplitude?.subscriptions.map(({ name, action, subscribe, mapping, enabled }) => ({ name, action, subscribe, mapping, enabled })),
      [
        {
          name: 'Events',
          action: 'logEventV2',
          subscribe: 'type = "track"',
          mapping: { user_id: { '@path': '$.userId' }, event_type: { '@path': '$.event' } },
          enabled: true,
        },
      ],
    )

    const count = [(await names('/sources')).length, (await names('/destinations')).length]
    const third = await switchyardWith(env, service, 'import-workspace', file, '--secrets', secrets)
    assert.match(third.stdout, /Created 0 sources and 0 destinations\. 5 already exist\. 2 need secrets\. 5 cannot be imported\./)
    assert.deepEqual([(await names('/sources')).length, (await names('/destinations')).length], count)
    assert.equal((await switchyardWith(env, service, 'import-workspace', file, '--secrets', secrets, '--dry-run')).code, 1)
  })

  test('the text lists reasons, and the secrets to fill in as a file', async () => {
    const { stdout } = await switchyard(service, 'import-workspace', saved('workspace.json', exportedWorkspace()), '--dry-run')
    for (const expected of [
      /^! source stripe: It is a cloud source/m,
      /^! destination Universal Analytics \(google-analytics, from Web shop\): Google Analytics Classic is a classic destination/m,
      /^\? destination HubSpot .*: Its settings need oauth\.$/m,
      /^! warehouses \(1\): They are not imported\. .* create a destination of the type warehouse\.$/m,
      /"oauth": \{\n +"clientId": "…",/,
    ])
      assert.match(stdout, expected)
  })

  test('an export of which everything can be imported exits with 0', async () => {
    const parts = {
      sources: [sourceOf('src-good', 'all_good', { name: 'All good' })],
      destinations: [destinationOf('d', 'actions-slack', { name: 'All good in Slack', sourceId: 'src-good' })],
      subscriptions: [subscriptionOf('s', 'd', 'postToChannel', { settings: { url: 'https://hooks.example.com', text: 'x' } })],
      filters: [],
    }
    assert.match(await says(service, 'import-workspace', saved('good.json', parts)), /^Created 1 source and 1 destination\.$/m)
    const again = /^Created 0 sources and 0 destinations\. 2 already exist\.$/m
    assert.match(await says(service, 'import-workspace', saved('good.json', parts)), again)
    const { data } = await service.api<{ data: { id: string; name: string; origin: string | null }[] }>('/destinations')
    const { id, origin } = data.find(({ name }) => name === 'All good in Slack') ?? assert.fail()
    assert.equal(origin, 'segment:d')
    const rename = (name: string | null, of: string | null): Promise<unknown> =>
      service.api(`/destinations/${id}`, { method: 'PATCH', body: { ...(name === null ? {} : { name }), origin: of } })
    await rename('Renamed', origin)
    assert.match(await says(service, 'import-workspace', saved('good.json', parts)), again, 'it is recognised after it was renamed')
    // A destination that an earlier version imported has no origin yet: the next run sets it.
    await rename('All good in Slack', null)
    assert.match(await says(service, 'import-workspace', saved('good.json', parts)), again)
    await service.api(`/destinations/${id}`, { method: 'PATCH', body: { name: 'Renamed again' } })
    assert.match(await says(service, 'import-workspace', saved('good.json', parts)), again)
  })

  test('a classic Webhooks destination becomes a webhook; a second run after a partial import says what is missing, and exits with 1', async () => {
    const headers = [{ key: 'X-Team', value: 'shop' }]
    const parts = {
      sources: [sourceOf('src-hooked', 'hooked', { name: 'Hooked' })],
      destinations: [
        destinationOf('w', 'webhooks', {
          name: 'Hook',
          sourceId: 'src-hooked',
          kind: 'Webhooks',
          settings: { hooks: [{ hook: 'https://hooks.example.com/x', headers }] },
        }),
        destinationOf('p', 'actions-slack', { name: 'Partly', sourceId: 'src-hooked' }),
      ],
      subscriptions: [
        subscriptionOf('s1', 'p', 'postToChannel', { name: 'Bad', trigger: 'type = =' }),
        subscriptionOf('s2', 'p', 'postToChannel', { name: 'Good', settings: { url: 'https://hooks.example.com', text: 'x' } }),
        subscriptionOf('s3', 'p', 'postToChannel', { name: 'Worse', trigger: 'nonsense' }),
      ],
      filters: [filterOf('f', 'p', 'lowercase(event) = "x"', [{ type: 'DROP' }])],
    }
    const first = await run(saved('partial.json', parts))
    assert.equal(first.code, 1)
    const { data } = await service.api<{ data: { name: string; type: string; urls?: string[]; headers?: object; enabled: boolean }[] }>(
      '/destinations',
    )
    const hook = data.find(({ name }) => name === 'Hook')
    assert.deepEqual(
      [hook?.type, hook?.urls, hook?.headers, hook?.enabled],
      ['webhook', ['https://hooks.example.com/x'], { 'X-Team': 'shop' }, true],
    )
    assert.equal(data.find(({ name }) => name === 'Partly')?.enabled, false, 'its filter could not be converted')
    const partly = first.report.destinations[1]
    assert.deepEqual(
      partly?.subscriptions.map(({ name, reason }) => [name, reason?.startsWith('subscribe is not a valid expression') ?? null]),
      [
        ['Bad', true],
        ['Good', null],
        ['Worse', true],
      ],
    )
    const second = await run(saved('partial.json', parts))
    assert.equal(second.code, 1)
    assert.deepEqual(
      second.report.destinations[1]?.subscriptions.map(({ name, outcome }) => [name, outcome]),
      [
        ['Bad', 'not_supported'],
        ['Good', 'exists'],
        ['Worse', 'not_supported'],
      ],
    )
    assert.match(second.report.destinations[1]?.notes.join() ?? '', /Its filter Filter f cannot be converted/)
  })

  test('a hostile file is rejected with exit code 2, and changes nothing', async () => {
    const before = [await names('/sources'), await names('/destinations')]
    const hostile: [value: unknown, expected: RegExp][] = [
      ['{"data":', /is not valid JSON/],
      [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, /not valid JSON|must be an object/],
      [{ data: { sources: 'all' } }, /sources must be a list/],
      [pageOf('sources', [sourceOf('a', 'a'), { ...sourceOf('b', 'b'), name: { toString: 1 } }]), /sources\[1\]\.name must be a string/],
    ]
    for (const [value, expected] of hostile) {
      const { code, stderr } = await switchyard(service, 'import-workspace', saved('hostile.json', value))
      assert.deepEqual([code, expected.test(stderr)], [2, true], stderr)
    }
    const large = saved('large.json', '')
    truncateSync(large, 65 * 1024 * 1024)
    assert.match((await switchyard(service, 'import-workspace', large)).stderr, /larger than 64 MiB/)
    assert.match((await switchyard(service, 'import-workspace', join(folder, 'nothing.json'))).stderr, /no such file/)
    assert.deepEqual([await names('/sources'), await names('/destinations')], before)
  })

  test('names, keys and settings that the service rejects are listed, and the rest is imported', async () => {
    const parts = {
      sources: [
        sourceOf('long', 'long', { name: 'x'.repeat(101) }),
        sourceOf('bad-key', 'bad_key', { writeKeys: ['not a key'] }),
        sourceOf('fine', 'fine', { name: 'Fine \u001b[31m source', writeKeys: [] }),
        sourceOf('ok', 'ok_source'),
      ],
      destinations: [
        destinationOf('d1', 'actions-slack', { name: 'Of a rejected source', sourceId: 'long' }),
        destinationOf('d2', '__proto__', { name: 'Prototype', sourceId: 'ok' }),
        destinationOf('d3', 'actions-amplitude', {
          name: 'Wrong choice',
          sourceId: 'ok',
          settings: { apiKey: 'a', secretKey: 'b', endpoint: 'the moon' },
        }),
        destinationOf('d4', '../../sources', { name: 'Path', sourceId: 'ok' }),
        destinationOf('d5', 'actions-slack', { name: 'Webhooks', sourceId: 'ok' }),
      ],
    }
    const { code, report } = await run(saved('rejected.json', parts))
    assert.equal(code, 1)
    assert.deepEqual(Object.values(outcomes(report.sources)), ['not_supported', 'not_supported', 'not_supported', 'created'])
    assert.deepEqual(
      Object.values(outcomes(report.destinations)),
      Array.from({ length: 5 }, () => 'not_supported'),
    )
    for (const { reason } of [...report.sources.slice(0, 3), ...report.destinations]) assert.ok(reason)
  })

  test('--secrets for a destination that is not in the export is an error', async () => {
    const secrets = saved('other.json', { Nobody: { apiKey: 'x' } })
    const { code, stderr } = await switchyard(
      service,
      'import-workspace',
      saved('workspace.json', exportedWorkspace()),
      '--secrets',
      secrets,
    )
    assert.deepEqual([code, /no destination with the name Nobody/.test(stderr)], [2, true])
  })
})

interface SegmentPage {
  trackingPlanId?: string
  data: Record<string, { destinationId: string }[]>
}

/** Stands in for Segment's Public API: lists in pages of two, only with a token, and subscriptions only in the alpha version. */
async function startSegment(): Promise<AsyncDisposable & { url: string }> {
  const all = (part: string, plan: string | undefined): { destinationId: string }[] =>
    (exportedWorkspace() as SegmentPage[]).flatMap(({ trackingPlanId, data }) => (trackingPlanId === plan ? (data[part] ?? []) : []))
  const server = createServer(({ url = '', headers }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://segment')
    const [, plan, list] = /^\/tracking-plans(?:\/([^/]+)\/(\w+))?$/.exec(pathname) ?? []
    const [, destination, named = ''] = /^\/(?:destinations?\/([^/]+)\/)?(\w+)$/.exec(pathname) ?? []
    const part = pathname === '/tracking-plans' ? 'trackingPlans' : (list ?? named)
    const version = part === 'subscriptions' ? 'v1alpha' : 'v1'
    if (pathname.startsWith('/destination/') !== (part === 'filters')) return response.writeHead(404).end('{"errors":[]}')
    if (headers.authorization !== 'Bearer token-of-segment') return response.writeHead(401).end('{"errors":[]}')
    if (headers.accept !== `application/vnd.segment.${version}+json` || searchParams.get('pagination.count') !== '200')
      return response.writeHead(422).end('{"errors":[]}')
    const entries = all(part, plan).filter(({ destinationId }) => destination === undefined || destinationId === destination)
    const start = Number(Buffer.from(searchParams.get('pagination.cursor') ?? '', 'base64').toString())
    const next = start + 2 < entries.length ? Buffer.from(String(start + 2)).toString('base64') : null
    const pagination = { current: 'MA==', next, totalEntries: entries.length }
    return response.end(JSON.stringify({ data: { [part]: entries.slice(start, start + 2), pagination } }, null, 2))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const LACKS_JQ = spawnSync('jq', ['--version']).status !== 0 && 'jq is not installed'

test('the script of the guide exports every page of a workspace', { skip: LACKS_JQ }, async () => {
  await using segment = await startSegment()
  const guide = readFileSync(join(ROOT, 'docs/guide/move-a-segment-workspace.md'), 'utf8')
  const script = blocksOf(guide).find(({ text }) => text.includes('pages()'))?.text ?? ''
  const run = (token: string): Promise<unknown> =>
    promisify(execFile)('sh', ['-c', script], {
      cwd: folder,
      env: { PATH: process.env['PATH'], SEGMENT_API: segment.url, SEGMENT_TOKEN: token },
    })
  await run('token-of-segment')
  const exported = readFileSync(join(folder, 'workspace.json'), 'utf8')
  assert.deepEqual(parseWorkspace(exported, 'exported'), parseWorkspace(JSON.stringify(exportedWorkspace()), 'expected'))
  await assert.rejects(run('another'), /401/)
})
