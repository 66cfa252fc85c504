import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { startInProcess } from '../e2e/system/in-process.ts'
import { startReceiver } from '../e2e/system/receiver.ts'
import { wire } from '../e2e/system/wiring.ts'
import { collectingEndpoint, deferred } from './testing/collecting-endpoint.ts'
import { runExample, startExample } from './testing/run-example.ts'

const FILE = 'backpressure-import.ts'

function track(event: string, extra: object = {}): string {
  return JSON.stringify({ type: 'track', userId: 'u', event, timestamp: '2020-01-02T03:04:05.678Z', ...extra })
}

// Tests run concurrently, because each one mostly waits for its own process.
suite('the import', { concurrency: 4 }, () => {
  test('past messages of every type arrive with their original timestamps', async (t) => {
    const { url, messages } = await collectingEndpoint(t)
    const lines = [
      track('Old'),
      JSON.stringify({ type: 'identify', userId: 'u', traits: { plan: 'pro' }, timestamp: '2019-01-01' }),
      JSON.stringify({ type: 'page', anonymousId: 'a', name: 'Home', timestamp: 1_500_000_000_000 }),
      JSON.stringify({ type: 'screen', userId: 'u', name: 'Main', timestamp: '2018-01-01T00:00:00+01:00' }),
      JSON.stringify({ type: 'group', userId: 'u', groupId: 'g', timestamp: '2018-01-01T00:00:00Z' }),
      JSON.stringify({ type: 'alias', userId: 'u', previousId: 'p', timestamp: '2018-01-01T00:00:00Z' }),
    ]
    const { code, stdout, stderr } = await runExample(t, FILE, { env: { SWITCHYARD_HOST_URL: url }, input: lines.join('\n') })
    assert.deepEqual([code, stdout], [0, '6 of 6 messages delivered, 0 lines rejected\n'])
    assert.match(stderr, /6 lines read, 6 delivered, 0 rejected, paused 0 times\n$/)
    assert.deepEqual(
      messages.map(({ type, timestamp }) => [type, timestamp]),
      [
        ['track', '2020-01-02T03:04:05.678Z'],
        ['identify', '2019-01-01'],
        ['page', 1_500_000_000_000],
        ['screen', '2018-01-01T00:00:00+01:00'],
        ['group', '2018-01-01T00:00:00Z'],
        ['alias', '2018-01-01T00:00:00Z'],
      ],
    )
  })

  test('invalid lines are reported by the example or by the client, and the others arrive', async (t) => {
    const { url, messages } = await collectingEndpoint(t)
    const lines = [
      `\ufeff${track('First')}\r`,
      'not json',
      '',
      'null',
      track('With\u2028separator'),
      JSON.stringify({ type: 'buy', userId: 'u', timestamp: '2020-01-01' }),
      JSON.stringify({ type: 'track', userId: 'u', event: 'Undated' }),
      track('Badly dated', { timestamp: 'yesterday' }),
      track(''),
      track('Large', { properties: { filler: 'x'.repeat(40_000) } }),
      track('Last'),
    ]
    const { code, stdout } = await runExample(t, FILE, { env: { SWITCHYARD_HOST_URL: url }, input: `${lines.join('\n')}\n` })
    assert.equal(code, 1)
    const [summary, ...rejected] = stdout.trimEnd().split('\n')
    assert.equal(summary, '3 of 7 messages delivered, 7 lines rejected')
    assert.deepEqual(
      rejected.map((text) => text.split(': ').slice(0, 2).join(' ')),
      [
        'line 2 invalid_json',
        'line 4 invalid_request',
        'line 6 unknown_type',
        'line 7 timestamp_required',
        'line 8 timestamp_invalid',
        'line 9 event_required',
        'line 10 message_too_large',
      ],
    )
    assert.deepEqual(
      messages.map((message) => 'event' in message && message.event),
      ['First', 'With\u2028separator', 'Last'],
    )
  })

  test('the reader pauses while the service does not answer, and then the whole file arrives', async (t) => {
    const { promise: held, resolve: letGo } = deferred()
    const { url, messages } = await collectingEndpoint(t, { hold: held })
    const dir = mkdtempSync(join(tmpdir(), 'switchyard-import-'))
    t.after(() => rmSync(dir, { recursive: true }))
    const file = join(dir, 'history.ndjson')
    const filler = 'x'.repeat(20_000)
    writeFileSync(file, Array.from({ length: 600 }, (_, index) => track(`Event ${index}`, { properties: { filler } })).join('\n'))
    const example = startExample(t, FILE, { args: [file], env: { SWITCHYARD_HOST_URL: url } })
    const [, read] = await example.waitFor(/(\d+) lines read, 0 delivered, 0 rejected, paused 1 times/, 'stderr')
    // The client's high-water mark is 4 MiB, which is 208 of these lines.
    assert.ok(Number(read) < 220, `read ${read} lines while nothing was delivered`)
    letGo()
    const { code, stdout } = await example.finished
    assert.deepEqual([code, stdout], [0, '600 of 600 messages delivered, 0 lines rejected\n'])
    assert.equal(messages.length, 600)
    assert.equal(new Set(messages.map(({ messageId }) => messageId)).size, 600)
  })

  test('on a second run the same lines get the same IDs, and lines with an ID keep it', async (t) => {
    const { url, messages } = await collectingEndpoint(t)
    const input = [track('Same'), track('Same'), track('Own', { messageId: 'own-1' })].join('\n')
    for (let run = 0; run < 2; run++) await runExample(t, FILE, { env: { SWITCHYARD_HOST_URL: url }, input })
    const ids = messages.map(({ messageId }) => messageId)
    assert.deepEqual(ids.slice(0, 3), ids.slice(3))
    assert.equal(new Set(ids).size, 3)
    assert.equal(ids[2], 'own-1')
  })

  test('messages that the service rejects are also reported by line', async (t) => {
    // The test endpoint rejects only a blank key.
    const { url } = await collectingEndpoint(t)
    const { code, stdout } = await runExample(t, FILE, { env: { SWITCHYARD_HOST_URL: url, SWITCHYARD_WRITE_KEY: ' ' }, input: track('A') })
    assert.equal(code, 1)
    assert.match(stdout, /^0 of 1 messages delivered, 1 lines rejected.*\nline 1: delivery_failure: .*401.*invalid_write_key/)
  })

  test('a file that cannot be read is reported', async (t) => {
    const { code, stderr } = await runExample(t, FILE, { args: [join(tmpdir(), 'switchyard-no-such-file')] })
    assert.equal(code, 2)
    assert.match(stderr, /^Cannot read .*ENOENT/)
  })

  test('after SIGTERM it delivers the lines that it has read, and another run delivers the rest, each line once to the webhook', async (t) => {
    await using service = await startInProcess()
    await using receiver = await startReceiver()
    const { writeKey } = await wire(service, { urls: [receiver.url], batch: { size: 1_000, lingerMs: 20 } })
    const env = { SWITCHYARD_HOST_URL: service.url, SWITCHYARD_WRITE_KEY: writeKey }
    const all = Array.from({ length: 3_000 }, (_, index) => track(`Event ${index}`))

    // A pipe that stays open: without the signal it would wait forever.
    const first = startExample(t, FILE, { env, input: null })
    first.child.stdin?.write(`${all.slice(0, 1_000).join('\n')}\n`)
    await first.waitFor(/1000 lines read/, 'stderr')
    first.child.kill('SIGTERM')
    const { code, stdout } = await first.finished
    assert.deepEqual(
      [code, stdout],
      [1, 'stopped after line 1000; run it again for the rest\n1000 of 1000 messages delivered, 0 lines rejected\n'],
    )

    const second = await runExample(t, FILE, { env, input: all.join('\n') })
    assert.deepEqual([second.code, second.stdout], [0, '3000 of 3000 messages delivered, 0 lines rejected\n'])
    await receiver.until(() => receiver.byMessageId.size === 3_000)
    assert.equal(receiver.messages().length, 3_000)
    assert.deepEqual([...new Set(receiver.messages().map(({ timestamp }) => timestamp))], ['2020-01-02T03:04:05.678Z'])
  })

  test('stopped while the service does not answer, it ends within its time limit and reports the lines that did not arrive', async (t) => {
    const { url } = await collectingEndpoint(t, { hold: new Promise(() => {}) })
    const example = startExample(t, FILE, { env: { SWITCHYARD_HOST_URL: url }, input: track('Lost') })
    await example.waitFor(/1 lines read/, 'stderr')
    example.child.kill('SIGTERM')
    const { code, stdout } = await example.finished
    assert.equal(code, 1)
    assert.match(stdout, /^stopped after line 1; .*\n0 of 1 messages delivered, 1 lines rejected\nline 1: close_timeout/)
  })
})
