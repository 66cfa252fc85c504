// What an operator sees: metrics, statistics, the live feed and the log of the whole service, and the pages and files that mention them.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { COMMANDS } from '../../packages/server/src/commands/commands.ts'
import { parseCommandLine } from '../../packages/server/src/commands/line/parse-command-line.ts'
import { METRICS, PROCESS_METRICS } from '../../packages/server/src/observe/metric-table.ts'
import { startReceiver } from '../system/receiver.ts'
import { CLI, type Service, startService, TOKEN } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

const docs = join(import.meta.dirname, '..', '..', 'docs')
const track = (messageId: string, more: object = {}): object => ({ type: 'track', event: 'tested', userId: 'u', messageId, ...more })

/** Values by series, as text. */
async function scrape({ url }: Pick<Service, 'url'>, headers: Record<string, string> = {}): Promise<Map<string, number>> {
  const response = await fetch(`${url}/metrics`, { headers })
  const text = await response.text()
  assert.equal(response.status, 200, text)
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]))
}

async function listen(
  { url }: Pick<Service, 'url'>,
  query: string,
): Promise<{ response: IncomingMessage; next: () => Promise<{ event: string; data: Record<string, unknown> }> }> {
  const reader = request(`${url}/api/live${query}`, { agent: false, headers: { authorization: `Bearer ${TOKEN}` } }).end()
  const [response] = (await once(reader, 'response')) as [IncomingMessage]
  assert.equal(response.statusCode, 200)
  reader.on('error', () => {})
  let text = ''
  const chunks = response[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  return {
    response,
    async next() {
      for (;;) {
        const end = text.indexOf('\n\n')
        if (end !== -1) {
          const [, event, data] = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end)) ?? []
          text = text.slice(end + 2)
          if (event !== undefined) return { event, data: JSON.parse(data as string) as Record<string, unknown> }
        } else {
          const { value, done } = await chunks.next()
          if (done) throw new Error('the stream has ended')
          text += value.toString()
        }
      }
    },
  }
}

test('the metrics agree with the ledger, also after a restart', async () => {
  await using receiver = await startReceiver()
  await using service = await startService()
  const id = await service.destination({ urls: [receiver.url], name: 'a "name"' })
  await service.send([track('m-1'), track('m-2'), { type: 'track', userId: 'u' }])
  await service.send([track('m-2')])
  await service.settled()
  const rejected = `switchyard_messages_rejected_total{source="${service.sourceId}",code="event_required"}`
  const expected = async (at: Pick<Service, 'url' | 'sourceId'>): Promise<void> => {
    // Counted shortly after the answer.
    const found = await eventually(
      () => scrape(at),
      (series) => series.has(rejected),
    )
    for (const [series, value] of [
      [`switchyard_messages_accepted_total{source="${service.sourceId}"}`, 2],
      [`switchyard_messages_duplicate_total{source="${service.sourceId}"}`, 1],
      [rejected, 1],
      [`switchyard_deliveries_owed_total{destination="${id}"}`, 2],
      [`switchyard_deliveries_delivered_total{destination="${id}"}`, 2],
      [`switchyard_deliveries_pending{destination="${id}"}`, 0],
      [`switchyard_oldest_pending_age_seconds{destination="${id}"}`, 0],
      [`switchyard_breaker_state{destination="${id}",state="closed"}`, 1],
      [`switchyard_destination_info{destination="${id}",name="a \\"name\\""}`, 1],
      ['switchyard_store_writable', 1],
      ['switchyard_store_readable', 1],
    ] as const) {
      assert.equal(found.get(series), value, series)
    }
  }
  await expected(service)
  const found = await scrape(service)
  assert.equal(found.get(`switchyard_attempt_duration_seconds_count{destination="${id}",outcome="success"}`), 2)
  assert.equal(found.get(`switchyard_delivery_latency_seconds_count{destination="${id}"}`), 2)
  assert.ok((found.get('switchyard_store_commit_duration_seconds_count') ?? 0) > 0)
  const point = async (at: Service, query: string): Promise<Record<string, unknown>> => {
    const { data } = await at.api<{ data: Record<string, number>[] }>(`/stats?step=1h&${query}`)
    const sum: Record<string, number> = {}
    for (const each of data)
      for (const name of ['accepted', 'duplicates', 'delivered', 'attempts']) sum[name] = (sum[name] ?? 0) + (each[name] ?? 0)
    return sum
  }
  assert.deepEqual(await point(service, ''), { accepted: 2, duplicates: 1, delivered: 2, attempts: 2 })
  await service.stop()
  const next = await service.restart()
  await expected(next)
  assert.deepEqual(await point(next, ''), { accepted: 2, duplicates: 1, delivered: 2, attempts: 2 })
  assert.deepEqual(await point(next, `destinationId=${id}`), { accepted: 0, duplicates: 0, delivered: 2, attempts: 2 })
  await next.api(`/destinations/${id}`, { method: 'DELETE' })
  assert.deepEqual(
    [...(await scrape(next)).keys()].filter((series) => series.includes(id)),
    [],
  )
})

test('the metrics are open on loopback, need a token elsewhere, and can be turned off', async () => {
  const status = async ({ url }: Service, token?: string): Promise<number> =>
    (await fetch(`${url}/metrics`, { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } })).status
  {
    await using service = await startService({ env: { SWITCHYARD_HOST: '0.0.0.0' } })
    assert.deepEqual([await status(service), await status(service, 'wrong'), await status(service, TOKEN)], [401, 401, 200])
    const { token } = await service.api<{ token: string }>('/tokens', { method: 'POST', body: { name: 'prometheus', role: 'viewer' } })
    assert.equal(await status(service, token), 200)
  }
  await using closed = await startService({ env: { SWITCHYARD_METRICS: 'off' } })
  assert.equal(await status(closed, TOKEN), 404)
})

test('the metrics, the log and the live feed show a destination that fails', async () => {
  await using receiver = await startReceiver()
  receiver.answer = () => ({ status: 500 })
  await using service = await startService({ log: 'debug' })
  const id = await service.destination({ urls: [`${receiver.url}?token=hidden`] })
  const live = await listen(service, `?destinationId=${id}`)
  await service.send([track('m-1')])
  const { event, data } = await live.next()
  assert.deepEqual(
    [event, data['messageId'], data['destinationId'], data['attempt'], data['status'], data['reason'], data['success']],
    ['attempt', 'm-1', id, 1, 500, 'http_500', false],
  )
  const line = await service.logged(({ msg }) => msg.startsWith('the attempt failed'))
  assert.deepEqual(
    [line['messageId'], line['destinationId'], line['sourceId'], line['attempt'], line['deliveryId']],
    ['m-1', id, service.sourceId, 1, data['deliveryId']],
  )
  await eventually(
    () => scrape(service),
    (found) => found.get(`switchyard_deliveries_retried_total{destination="${id}"}`) === 1,
  )
  const found = await scrape(service)
  assert.equal(found.get(`switchyard_deliveries_pending{destination="${id}"}`), 1)
  assert.equal(found.get(`switchyard_attempt_duration_seconds_count{destination="${id}",outcome="temporary"}`), 1)
  assert.doesNotMatch(JSON.stringify([service.stderr(), data]), /hidden/)
  live.response.destroy()
})

test('the live feed shows messages as they are accepted and rejected', async () => {
  await using service = await startService()
  const live = await listen(service, `?sourceId=${service.sourceId}`)
  await service.send([track('m-1', { properties: { price: 3 } }), { type: 'track', userId: 'u' }])
  const first = await live.next()
  assert.deepEqual([first.event, first.data['messageId'], first.data['type']], ['accepted', 'm-1', 'track'])
  assert.deepEqual((first.data['message'] as { properties: unknown }).properties, { price: 3 })
  const second = await live.next()
  assert.deepEqual([second.event, second.data['code'], second.data['messages']], ['rejected', 'event_required', 1])
  live.response.destroy()
})

test('open streams do not delay the stop of the service', async () => {
  await using service = await startService()
  const streams = await Promise.all([listen(service, ''), listen(service, '')])
  const ended = Promise.all(streams.map(({ next }) => assert.rejects(next())))
  service.kill('SIGTERM')
  const { code, ms } = await service.ended
  assert.equal(code, 0)
  assert.ok(ms < 5_000, `${ms} ms`)
  await ended
})

test('the three documented commands lead from an alert to the failing delivery, its cause and a replay', async () => {
  await using receiver = await startReceiver(() => ({ status: 400 }))
  await using service = await startService()
  await service.destination({ urls: [receiver.url], name: 'my webhook' })
  await service.send([track('m-1')])
  await service.settled()
  const page = readFileSync(join(docs, 'operations', 'alerts.md'), 'utf8')
  const [, block = ''] = /```sh\n([^]*?)```/.exec(page) ?? []
  const commands = block.trim().split('\n')
  assert.equal(commands.length, 3)
  const env = { ...process.env, NODE: process.execPath, CLI, SWITCHYARD_URL: service.url, SWITCHYARD_TOKEN: TOKEN }
  const run = async (command: string): Promise<string> =>
    (await promisify(execFile)('sh', ['-c', `switchyard() { "$NODE" "$CLI" "$@"; }\n${command}`], { env })).stdout
  const [health = '', deliveries = '', dryRun = ''] = await Promise.all(commands.map(run))
  assert.match(health, /closed/)
  assert.match(deliveries, /failed\s+http_400.*m-1/)
  assert.match(dryRun, /\b1\b/)
  receiver.answer = () => undefined
  await run((commands[2] as string).replace(' --dry-run', ''))
  const [ledger] = await service.settled()
  assert.deepEqual([ledger?.failed, ledger?.delivered], [1, 1])
})

// ── Documentation ──────────────────────────────────────────────────────────────────────────────────────────────────

const KNOWN = new Map<string, string>([
  ...Object.values(METRICS).map(({ name, type }): [string, string] => [name, type]),
  ...Object.entries(PROCESS_METRICS).map(([name, { type }]): [string, string] => [name, type]),
])

function unknownMetrics(text: string): string[] {
  const named = new Set(text.match(/\b(?:switchyard|process|nodejs)_[a-z0-9_]+\b/g) ?? [])
  assert.ok(named.size > 5)
  return [...named].filter((name) => {
    const ofHistogram = name.replace(/_(bucket|sum|count)$/, '')
    return !KNOWN.has(name) && KNOWN.get(ofHistogram) !== 'histogram'
  })
}

test('the Grafana dashboard is valid and uses existing metrics', () => {
  const text = readFileSync(join(docs, 'operations', 'grafana-dashboard.json'), 'utf8')
  const { panels } = JSON.parse(text) as { panels: { id: number; type: string; targets?: { expr: string }[] }[] }
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const exprs = panels.filter(({ type }) => type !== 'row').flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
  assert.ok(exprs.length > 20)
  for (const expr of exprs) assert.deepEqual([unbalanced(expr), multiplied(expr)], [[], []], expr)
  assert.deepEqual(unknownMetrics(text), [])
})

test('the alert rules use existing metrics, and the page explains each of them with existing commands', () => {
  const text = readFileSync(join(docs, 'operations', 'alerts.yml'), 'utf8')
  const page = readFileSync(join(docs, 'operations', 'alerts.md'), 'utf8')
  const { groups } = parse(text) as { groups: { rules: Record<string, unknown>[] }[] }
  const rules = groups.flatMap((group) => group.rules)
  assert.deepEqual(unknownMetrics(text), [])
  const explained = Array.from(page.matchAll(/^### (\w+)$/gm), ([, name]) => name)
  assert.deepEqual(
    rules.map(({ alert }) => alert),
    explained,
  )
  for (const { alert, expr, labels, annotations } of rules) {
    assert.deepEqual([unbalanced(expr as string), multiplied(expr as string)], [[], []], String(alert))
    assert.match((labels as { severity: string }).severity, /^(warning|critical)$/)
    const { summary, description, runbook } = annotations as Record<string, string>
    assert.ok(summary && description, String(alert))
    assert.equal(runbook, `docs/operations/alerts.md#${String(alert).toLowerCase()}`)
  }
  const lines = Array.from(page.matchAll(/(?<=`|^)\.\/switchyard ([^`#\n]+)/gm), ([, line = '']) => line.trim())
  assert.ok(lines.length > 30, 'the commands of the page are found')
  for (const line of lines) {
    const parsed = parseCommandLine(line.replaceAll(/'[^']*'/g, 'x').split(/ +/), COMMANDS)
    assert.notEqual(parsed.kind, 'problems', `${line}: ${JSON.stringify(parsed)}`)
  }
  // The reasons of the pending deliveries and the output of doctor show why a destination fails.
  const [, breaker = ''] = /^### SwitchyardBreakerOpen\n([^]*?)^### /m.exec(page) ?? []
  for (const command of ['./switchyard doctor', "./switchyard deliveries --destination 'my webhook' --state pending"])
    assert.ok(breaker.includes(command), command)
})

/** Metrics of the store that are not aggregated with max: every node reports the same value, so a sum would be wrong. */
function multiplied(expr: string): string[] {
  const ofStore = new Set(Object.values(METRICS).flatMap(({ name, origin }) => (origin === 'store' ? [name] : [])))
  const plain = expr.replaceAll(/\b(sum|max|min|avg|count) by \([^)]*\) \(/g, '$1(')
  /** From the innermost to the outermost. */
  const around: string[] = []
  const found: string[] = []
  for (const [token] of plain.matchAll(/[a-z_0-9]*\(|\)|\bswitchyard_[a-z_]+\b/g)) {
    if (token === ')') around.shift()
    else if (token.endsWith('(')) around.unshift(token.slice(0, -1))
    else if (ofStore.has(token) && around.find((name) => /^(sum|max|min|avg|count)$/.test(name)) !== 'max') found.push(token)
  }
  return found
}

test('metrics that can be summed over nodes are distinguished from those that cannot', () => {
  assert.deepEqual(multiplied('sum(rate(switchyard_messages_accepted_total[5m]))'), ['switchyard_messages_accepted_total'])
  assert.deepEqual(multiplied('switchyard_deliveries_pending > 5'), ['switchyard_deliveries_pending'])
  assert.deepEqual(multiplied('sum(max by (source) (rate(switchyard_messages_accepted_total[5m])))'), [])
  assert.deepEqual(multiplied('sum(rate(switchyard_deliveries_retried_total[5m]))'), [])
})

function unbalanced(expr: string): string[] {
  const open: string[] = []
  const pairs: Record<string, string> = { ')': '(', '}': '{', ']': '[' }
  for (const [character] of expr.replaceAll(/"[^"]*"/g, '').matchAll(/[(){}[\]]/g)) {
    if (pairs[character] === undefined) open.push(character)
    else if (open.pop() !== pairs[character]) return [character]
  }
  return open
}
