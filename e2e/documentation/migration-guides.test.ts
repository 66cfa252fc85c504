// Follows the migration guides for Segment and RudderStack: their code blocks are saved or run in order, with the other product's clients and
// a receiver that checks what arrives. Only the placeholders for hosts are replaced.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { suite, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { verifyWebhook } from '@switchyard/webhook'
import { environment, switchyard } from '../system/command-line.ts'
import { type Arrival, type ReceivedMessage, type Receiver, startReceiver } from '../system/receiver.ts'
import { CLI, type Service, startService } from '../system/service.ts'
import type { MessageView } from '../system/wiring.ts'
import { blocksOf, ROOT } from './documentation.ts'

/** Follows a guide instead of a person, with a folder, a shell in it, and the packages that an application would have. */
class Follower implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'switchyard-migration-'))
  /** The output of each block. */
  readonly outputs: { script: string; printed: string }[] = []
  readonly #env: Record<string, string>
  readonly #replaced: (readonly [string, string])[]

  constructor(replaced: (readonly [string, string])[]) {
    this.#replaced = replaced
    const bin = join(this.folder, 'bin')
    mkdirSync(bin)
    // As in the folder of a clone.
    const program = join(this.folder, 'switchyard')
    writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${CLI}' --no-color "$@"\n`)
    chmodSync(program, 0o755)
    symlinkSync(process.execPath, join(bin, 'node'))
    symlinkSync(join(ROOT, 'node_modules'), join(this.folder, 'node_modules'))
    this.#env = environment(null, { PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}` })
  }

  async follow(guide: string): Promise<void> {
    for (const { language, words, text, line } of blocksOf(readFileSync(join(ROOT, guide), 'utf8'))) {
      const own = this.#replaced.reduce((all, [from, to]) => all.replaceAll(from, to), text)
      const where = `${guide}:${line}`
      if (language === 'text') this.#compare(own, where)
      else if (language === 'sh') await this.#run(own, where)
      else this.save(words[0] ?? assert.fail(`${where}: a file needs a name`), own)
    }
  }

  save(name: string, content: string | Buffer): void {
    mkdirSync(dirname(join(this.folder, name)), { recursive: true })
    writeFileSync(join(this.folder, name), content)
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), 'utf8')
  }

  /** The variables that were exported in the shell. */
  variable(name: string): string {
    return new RegExp(`^export ${name}=["'](.*)["']$`, 'm').exec(this.read('.exports'))?.[1] ?? assert.fail(`${name} is not set`)
  }

  printedBy(script: string): string {
    return this.outputs.find((output) => output.script.includes(script))?.printed ?? assert.fail(`${script} is not in the guide`)
  }

  #run(script: string, where: string): Promise<void> {
    assert.doesNotMatch(script, /…|\b(?:events|hooks|dataplane)\.example\.com/, `${where}: a placeholder that nobody fills in`)
    // Variables that one block exports are set in the next, as in one terminal. The file is always complete, because a receiver reads it.
    const text = `[ ! -f .exports ] || . ./.exports\nset -e\n${script}\nexport -p > .exports.new\nmv .exports.new .exports\n`
    return new Promise((resolve, reject) => {
      execFile('sh', ['-c', text], { cwd: this.folder, env: this.#env, timeout: 60_000 }, (error, stdout, stderr) => {
        this.outputs.push({ script, printed: stdout })
        if (error === null) resolve()
        else reject(new Error(`${where} ended with ${error.code}\n${stdout}${stderr}`, { cause: error }))
      })
    })
  }

  #compare(expected: string, where: string): void {
    const pattern = expected
      .trim()
      .split('\n')
      .map((line) => line.split('…').map(escaped).join('.*'))
      .join('$[^]*^')
    assert.match(this.outputs.at(-1)?.printed ?? '', new RegExp(`^${pattern}$`, 'm'), where)
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

function named(receiver: Receiver, field: string, value: string): ReceivedMessage {
  return receiver.messages().find((message) => message[field] === value) ?? assert.fail(`${value} has not arrived`)
}

/** The other service, to which the applications still send: accepts everything. */
async function startOther(): Promise<Receiver & { taken: () => string[] }> {
  const other = await startReceiver(() => ({ body: '{"success":true}' }))
  const bodyOf = ({ headers, bytes }: Arrival): { batch: { messageId: string }[] } =>
    JSON.parse((headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString()) as never
  const taken = (): string[] => other.arrivals.flatMap((arrival) => bodyOf(arrival).batch.map(({ messageId }) => messageId))
  return { ...other, taken }
}

async function settledBooks(service: Service): Promise<void> {
  const [row] = await service.settled()
  assert.ok(row !== undefined)
  assert.deepEqual([row.failed, row.expired, row.cancelled], [0, 0, 0])
  assert.equal(row.delivered, row.owed)
}

function acceptedCount(follower: Follower): number {
  const [head = '', ...rows] = follower.printedBy('switchyard stats').trim().split('\n')
  assert.match(head, /^FROM +ACCEPTED +DUPLICATES +SUPPRESSED +REJECTED/)
  // A day may end during a test, so the check below uses the ledger.
  return rows.flatMap((row) => /^\d{4}-\S+ \S+ +(\d+) /.exec(row)?.[1] ?? []).reduce((sum, count) => sum + Number(count), 0)
}

const lines = (...messages: object[]): string => messages.map((message) => `${JSON.stringify(message)}\n`).join('')

/** A destination without historical import does not get old messages, and the API says why. */
async function saysItIsHistory(service: Service): Promise<void> {
  const messageId = 'from-long-ago'
  const batch = [{ type: 'track', messageId, userId: 'u-1', event: 'Old', timestamp: '2020-01-01T00:00:00.000Z' }]
  const { status } = await fetch(`${service.url}/v1/import`, { method: 'POST', body: JSON.stringify({ writeKey: 'OLD_WRITE_KEY', batch }) })
  assert.equal(status, 200)
  const { deliveries, skips } = await service.api<MessageView>(`/messages/${messageId}`)
  assert.deepEqual([deliveries, skips.map(({ reason }) => reason)], [[], ['historical']])
}

suite('the migration guides', { concurrency: 2 }, () => {
  test('from Segment: followed to the end, a receiver that checks Segment’s signature gets everything', async () => {
    await using service = await startService()
    await using segment = await startOther()
    const secret = 'the secret that Segment has'
    // As its documentation says: computed over the parsed body, converted to JSON again.
    await using receiver = await startReceiver(({ headers, bytes }) => {
      const digest = createHmac('sha1', secret)
        .update(JSON.stringify(JSON.parse(bytes.toString())))
        .digest('hex')
      return { status: headers['x-signature'] === digest ? 200 : 401 }
    })
    using follower = new Follower([
      ['https://events.example.com', service.url],
      ['https://hooks.example.com/', receiver.url],
      ['sy_…', service.token],
      // The client's own default is a host that a test must not send to.
      [
        "new Analytics({ writeKey: 'OLD_WRITE_KEY' })",
        `new Analytics({ writeKey: 'OLD_WRITE_KEY', host: '${segment.url.replace(/\/$/, '')}' })`,
      ],
    ])
    const past = (messageId: string, more: object = {}): object => ({
      anonymousId: 'a-1',
      channel: 'client',
      context: { library: { name: 'analytics.js', version: '4.4.7' } },
      event: 'Old',
      integrations: {},
      messageId,
      originalTimestamp: '2024-01-02T03:04:05.000Z',
      projectId: 'p',
      properties: {},
      receivedAt: '2024-01-02T03:04:06.500Z',
      sentAt: '2024-01-02T03:04:06.000Z',
      timestamp: '2024-01-02T03:04:05.500Z',
      type: 'track',
      userId: null,
      version: 2,
      writeKey: 'OLD_WRITE_KEY',
      _metadata: { bundled: ['Segment.io'] },
      ...more,
    })
    follower.save(
      'segment-logs/source/1704153600000/1.gz',
      gzipSync(lines(past('past-1'), past('past-2', { type: 'identify', userId: 'u-2' }))),
    )
    follower.save('segment-logs/source/1704153600000/2.gz', lines(past('past-3'), past('past-4')))

    await follower.follow('docs/guide/migrate-from-segment.md')
    await settledBooks(service)

    assert.equal(named(receiver, 'type', 'identify')['userId'], 'u-1')
    assert.deepEqual(named(receiver, 'event', 'Order Completed')['properties'], { total: 12.5, currency: '€' })
    const alias = named(receiver, 'type', 'alias')
    assert.deepEqual([alias['User ID'], alias['Previous ID']], ['u-1', 'a-1'])
    assert.equal(named(receiver, 'type', 'group')['groupId'], 'g-1')
    assert.equal(named(receiver, 'type', 'page')['name'], 'Home')
    for (const { headers, path, status } of receiver.arrivals)
      assert.deepEqual([headers['x-team'], headers['user-agent'], path, status], ['shop', 'Switchyard/1.0', '/segment', 200])
    assert.ok(receiver.arrivals.every(({ bytes }) => !/OLD_WRITE_KEY|projectId|channel|_metadata/.test(bytes.toString())))

    assert.equal(segment.taken().length, 20)
    for (const messageId of segment.taken()) assert.equal(receiver.byMessageId.get(messageId)?.length, 1)
    assert.equal(acceptedCount(follower), 3 + 1 + 1 + 20)
    for (const id of ['past-1', 'past-2', 'past-3', 'past-4'])
      assert.equal(named(receiver, 'messageId', id)['timestamp'], '2024-01-02T03:04:05.500Z')

    const sources = await service.api<{ data: { name: string; writeKeys: string[] }[] }>('/sources')
    const keys = new Map(sources.data.map(({ name, writeKeys }) => [name, writeKeys]))
    assert.deepEqual(keys.get('mobile app'), ['OLD_MOBILE_KEY'])
    assert.deepEqual(keys.get('back office'), ['OLD_BACK_OFFICE_KEY'])

    // Other statements of the guide.
    await saysItIsHistory(service)
    assert.match(follower.read('browser.mjs'), new RegExp(`cdnURL: '${service.url}'`))
    const settings = await fetch(`${service.url}/v1/projects/OLD_WRITE_KEY/settings`)
    const { integrations } = (await settings.json()) as { integrations: Record<string, { apiHost: string }> }
    assert.equal(integrations['Segment.io']?.apiHost, `${new URL(service.url).host}/v1`)
    const stranger = await fetch(`${service.url}/v1/track`, { method: 'POST', body: '{"writeKey":"WRONG","userId":"u","event":"e"}' })
    assert.equal(stranger.status, 401)
    const { data: destinations } = await service.api<{ data: { id: string }[] }>('/destinations')
    const path = `/destinations/${destinations[0]?.id}`
    await service.api(path, { method: 'PATCH', body: { sharedSecret: 'another' } })
    const tried = await service.api<{ attempts: { status: number }[] }>(`${path}/test`, { method: 'POST', body: {} })
    assert.deepEqual(
      tried.attempts.map(({ status }) => status),
      [401],
    )
  })

  test('from RudderStack: followed to the end, a receiver that checks its header and the new signature gets everything', async () => {
    await using service = await startService()
    await using dataPlane = await startOther()
    await using receiver = await startReceiver(({ headers, bytes }) => {
      const result = verifyWebhook({ headers, body: bytes }, { signingSecrets: follower.variable('HOOK_SIGNING_SECRET') })
      return { status: result.ok && headers['authorization'] === 'Bearer what the receiver asks for' ? 200 : 401 }
    })
    using follower = new Follower([
      ['https://events.example.com', service.url],
      ['https://hooks.example.com/', receiver.url],
      ['https://dataplane.example.com', dataPlane.url.replace(/\/$/, '')],
      ['sy_…', service.token],
    ])
    const past = (messageId: string, more: object = {}): object => ({
      anonymousId: 'a-1',
      channel: 'web',
      context: { library: { name: 'RudderLabs JavaScript SDK', version: '3.34.1' }, traits: { email: 'ada@example.com' } },
      event: 'Old',
      integrations: { All: true },
      messageId,
      originalTimestamp: '2024-01-02T08:34:05.000+05:30',
      properties: {},
      receivedAt: '2024-01-02T08:34:06.500+05:30',
      request_ip: '203.0.113.7',
      rudderId: 'r',
      sentAt: '2024-01-02T03:04:06.000Z',
      timestamp: '2024-01-02T08:34:05.500+05:30',
      type: 'track',
      ...more,
    })
    const alias = { type: 'alias', event: undefined, userId: 'u-2', previousId: 'a-2' }
    follower.save('rudder-logs/source/2024-01-02/1.gz', gzipSync(lines(past('past-1'), past('past-2', alias))))

    await follower.follow('docs/guide/migrate-from-rudderstack.md')
    await settledBooks(service)

    assert.equal(named(receiver, 'type', 'identify')['userId'], 'u-1')
    assert.deepEqual(named(receiver, 'event', 'Order Completed')['properties'], { total: 12.5, currency: '€' })
    assert.ok(named(receiver, 'event', 'Only There'))
    assert.equal(
      receiver.messages().some(({ event }) => event === 'Not There'),
      false,
    )
    assert.equal(named(receiver, 'Previous ID', 'a-1')['User ID'], 'u-1')
    assert.equal(named(receiver, 'type', 'page')['name'], 'Home')
    for (const { path, method, status } of receiver.arrivals) assert.deepEqual([path, method, status], ['/rudderstack', 'POST', 200])
    assert.ok(receiver.messages().every((message) => !['channel', 'rudderId', 'request_ip'].some((field) => field in message)))

    assert.equal(dataPlane.taken().length, 20)
    for (const messageId of dataPlane.taken()) assert.equal(receiver.byMessageId.get(messageId)?.length, 1)
    assert.equal(acceptedCount(follower), 5 + 1 + 20)
    const { timestamp, context } = named(receiver, 'messageId', 'past-1')
    assert.deepEqual([timestamp, context], ['2024-01-02T03:04:05.500Z', (past('') as { context: object }).context])
    assert.equal(named(receiver, 'messageId', 'past-2')['Previous ID'], 'a-2')

    // Other statements of the guide.
    await saysItIsHistory(service)
    const numbers = join(follower.folder, 'numbers.ndjson')
    writeFileSync(numbers, lines(past('past-5', { userId: 7 })))
    const { code } = await switchyard(service, 'import', numbers, '--source', 'web shop', '--rejects', `${numbers}.rejects`)
    assert.equal(code, 1)
    assert.match(readFileSync(`${numbers}.rejects`, 'utf8'), /"line":1,"code":"id_not_string"/)
    assert.ok(follower.read('browser.mjs').includes(`'${service.url}', { configUrl: '${service.url}/v1' }`))
    const config = await fetch(`${service.url}/v1/sourceConfig/?writeKey=OLD_WRITE_KEY`)
    const { source } = (await config.json()) as { source: { writeKey: string; destinations: unknown[] } }
    assert.deepEqual([source.writeKey, source.destinations], ['OLD_WRITE_KEY', []])
  })
})
