// `switchyard import` as a process against a real service: exact times, hostile lines, a service that is unreachable or limits the rate, a
// source that requires OAuth, a file that is larger than the memory limit.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { freePort } from '../../packages/server/src/store/fixtures/free-port.ts'
import { folderFor } from '../system/command-line.ts'
import { type ReceivedMessage, type Receiver, startReceiver } from '../system/receiver.ts'
import { type Ended, runService, type Service, startService } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

/** Writes the lines to a file and returns a function that imports it. */
function importing(t: TestContext, { url, token }: Pick<Service, 'url' | 'token'>, lines: readonly (string | Buffer)[]) {
  const folder = folderFor(t)
  const file = join(folder, 'past.ndjson')
  writeFileSync(file, Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')])))
  const start = (args: string[] = [], execArgv: string[] = [], env: Record<string, string> = {}) =>
    runService({ args: ['import', file, ...args], execArgv, env: { SWITCHYARD_URL: url, SWITCHYARD_TOKEN: token, ...env } })
  const run = (...args: string[]): Promise<Ended> => start(args).ended
  return { folder, file, start, run }
}

function messageOf(receiver: Receiver, id: string): ReceivedMessage {
  return receiver.messages().find(({ messageId }) => messageId === id) ?? assert.fail(`${id} has not arrived`)
}

const past = (messageId: string, more: object = {}): string =>
  JSON.stringify({ type: 'track', messageId, userId: 'u-1', event: 'Old', timestamp: '2020-02-03T04:05:06.789Z', ...more })

suite('import', { concurrency: 2 }, () => {
  test('exported messages with extra time fields keep their original timestamp', async (t) => {
    await using receiver = await startReceiver()
    await using service = await startService()
    await service.destination({ urls: [receiver.url] })
    const exported = {
      originalTimestamp: '2020-02-03T04:05:05.000Z',
      sentAt: '2020-02-03T04:05:07.000Z',
      receivedAt: '2020-02-03T04:05:08.789Z',
      version: 2,
      channel: 'server',
      _metadata: { bundled: [] },
      context: { library: { name: 'other', version: '1.2.3' } },
    }
    const { code, stdout, stderr } = await importing(t, service, [past('m-1', exported), past('m-2')]).run()
    assert.deepEqual([code, stdout], [0, '2 messages imported, 0 lines rejected.\n'], stderr)
    await service.settled(2)
    const one = await importing(t, service, [past('m-3')]).run()
    assert.equal(one.stdout, '1 message imported, 0 lines rejected.\n', one.stderr)
    for (const id of ['m-1', 'm-2']) assert.equal(messageOf(receiver, id)['timestamp'], '2020-02-03T04:05:06.789Z')
    assert.deepEqual(messageOf(receiver, 'm-1')['context'], exported.context)
  })

  test('an import with a wrong URL says what to change', async (t) => {
    await using service = await startService()
    const key = ['--write-key', service.writeKey]
    const below = await importing(t, { ...service, url: `${service.url}/api` }, [past('m-1')]).run(...key)
    assert.equal(below.code, 3)
    assert.match(below.stderr, /^The service at \S+\/api has no tracking API\. Leave out \/api and use http:/)
    const secure = await importing(t, { ...service, url: service.url.replace('http:', 'https:') }, [past('m-1')]).run(
      ...key,
      '--give-up',
      '1ms',
    )
    assert.equal(secure.code, 3)
    assert.match(secure.stderr, /^The server at https:\S+ does not use TLS\. Use http:/)
  })

  test('each hostile line is rejected with its number and a reason, and the others are imported', async (t) => {
    await using receiver = await startReceiver()
    await using service = await startService()
    await service.destination({ urls: [receiver.url] })
    const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
    const data = '"properties":{"__proto__":{"polluted":1}},"__proto__":{"polluted":1}'
    const hostile: [line: string | Buffer, code: string | null][] = [
      [past('good-1'), null],
      ['{"__proto__":{"type":"track","userId":"u","event":"e"}}', 'unknown_type'],
      ['{"type":"track","__proto__":{"userId":"u","event":"e"}}', 'no_user_anon_id'],
      [`{"type":"track","messageId":"good-2","userId":"u","event":"e",${data}}`, null],
      [past('large', { properties: { filler: 'x'.repeat(1_000_000) } }), 'message_too_large'],
      [past('large too', { properties: { filler: 'x'.repeat(33_000) } }), 'message_too_large'],
      ['{"type":"track"', 'invalid_json'],
      ['\u0000', 'invalid_json'],
      [
        Buffer.concat([Buffer.from('{"type":"track","userId":"u","event":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
        'invalid_utf8',
      ],
      ['null', 'invalid_request'],
      ['[{"type":"track"}]', 'invalid_request'],
      ['7', 'invalid_request'],
      [past('m', { type: 'buy' }), 'unknown_type'],
      [past('m', { type: 'constructor' }), 'unknown_type'],
      [past('m', { userId: 7 }), 'id_not_string'],
      [past('m', { messageId: 7 }), 'message_id_invalid'],
      [past('m'.repeat(101)), 'message_id_invalid'],
      [past('m', { timestamp: 'yesterday' }), 'timestamp_invalid'],
      [past('m', { event: { toJSON: 1 } }), 'event_required'],
      // Rejected by the service, and rejected before it is sent.
      [`{"type":"track","userId":"u","event":"e","properties":${nested(1_000)}}`, 'invalid_request'],
      [`{"type":"track","userId":"u","event":"e","properties":${nested(5_400)}}`, '*'],
      [past('good-3'), null],
    ]
    const { folder, run } = importing(
      t,
      service,
      hostile.map(([line]) => line),
    )
    const rejects = join(folder, 'rejects.ndjson')
    const ended = await run('--rejects', rejects, '--json')
    assert.equal(ended.code, 1, ended.stderr)
    const written = readFileSync(rejects, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { line: number; code: string; message: string })
    const expected = hostile.flatMap(([, code], at) => (code === null ? [] : [[at + 1, code]]))
    assert.deepEqual(
      written.map(({ line, code }, at) => [line, expected[at]?.[1] === '*' ? '*' : code]),
      expected,
    )
    for (const { message } of written) assert.match(message, /^\S.{5,200}$/)
    assert.equal((JSON.parse(ended.stdout) as { accepted: number }).accepted, 3)
    await service.settled(3)
    assert.deepEqual([...receiver.byMessageId.keys()].sort(), ['good-1', 'good-2', 'good-3'])
    assert.match(JSON.stringify(messageOf(receiver, 'good-2')), /"properties":\{"__proto__":\{"polluted":1\}\}/)
  })

  test('after the service stops and restarts, the import continues and sends each line once', async (t) => {
    const LINES = 20_000
    const lines = Array.from({ length: LINES }, (_, index) => past(`m-${index}`))
    const port = ['--port', String(await freePort())]
    await using service = await startService({ args: port })
    const { start } = importing(t, service, lines)
    // So slowly that the service stops long before the import has finished.
    const under = start(['--rate', '5000', '--json'])
    await eventually(
      () => service.stats(),
      ({ accepted }) => accepted >= 1_000,
      { what: 'part of the file is imported', state: () => under.stderr() },
    )
    service.kill('SIGKILL')
    await under.signals.until(() => /Cannot reach a service at .* Retrying\./.test(under.stderr()))
    const next = await service.restart({ args: port })
    const { code, stdout, stderr } = await under.ended
    assert.equal(code, 0, stderr)
    assert.equal((JSON.parse(stdout) as { accepted: number }).accepted, LINES)
    assert.equal((await next.stats()).accepted, LINES)
  })

  test('a service that limits the rate gets every line', async (t) => {
    await using service = await startService({ env: { SWITCHYARD_RATE_LIMIT: '1000' } })
    const lines = Array.from({ length: 3_000 }, (_, index) => past(`m-${index}`))
    // Shorter than the sum of the pauses: a service that answers is not unreachable.
    const { code, stderr } = await importing(t, service, lines).run('--give-up', '2s')
    assert.equal(code, 0, stderr)
    assert.match(stderr, /rate_limited.* Retrying\./)
    assert.deepEqual([(await service.stats()).accepted, (await service.stats()).duplicates], [3_000, 0])
  })

  test('importing to a source that requires OAuth works with an application’s key, and fails with a clear error without one', async (t) => {
    await using service = await startService()
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const publicKeyPem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    await service.api(`/sources/${service.sourceId}`, { method: 'PATCH', body: { requireOAuth: true } })
    const app = await service.api<{ id: string; keys: { id: string }[] }>('/oauth-apps', {
      method: 'POST',
      body: { name: 'Importer', sourceIds: [service.sourceId], keys: [{ publicKeyPem }] },
    })
    const keyId = app.keys[0]?.id ?? ''
    const lines = Array.from({ length: 1_200 }, (_, index) => past(`m-${index}`))
    const { folder, run, start } = importing(t, service, lines)
    const key = join(folder, 'private.pem')
    writeFileSync(key, pem)

    const without = await run()
    assert.equal(without.code, 3)
    assert.match(without.stderr, /^The tracking API answered \[401\].*oauth_required/)
    for (const [args, problem] of [
      [['--client-id', app.id], /^OAuth needs all three of --client-id, --key-id and --private-key\.\n$/],
      [['--scope', 'x'], /^OAuth needs all three of --client-id/],
      [['--client-id', app.id, '--key-id', keyId, '--private-key', join(folder, 'none.pem')], /^--private-key: .* no such file\.\n$/],
      [
        ['--client-id', app.id, '--key-id', keyId, '--private-key', 'env:NOT_SET'],
        /^--private-key: the environment variable NOT_SET is not set/,
      ],
      [
        ['--client-id', app.id, '--key-id', keyId, '--private-key', join(folder, 'past.ndjson')],
        /^--private-key is not a usable private key in PEM/,
      ],
      [
        ['--client-id', app.id, '--key-id', keyId, '--private-key', key, '--auth-server', 'x'],
        /^--auth-server must be an http or https URL/,
      ],
    ] as const) {
      const { code, stderr } = await run(...args)
      assert.equal(code, 2, stderr)
      assert.match(stderr, problem)
    }
    const stranger = await run('--client-id', app.id, '--key-id', 'another', '--private-key', key)
    assert.equal(stranger.code, 3)
    // A connection that the service has just closed is retried, which prints a line.
    assert.match(stranger.stderr, /^Could not get an access token: \[40[01]\]/m)
    const curve = join(folder, 'p384.pem')
    writeFileSync(curve, generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export({ type: 'pkcs8', format: 'pem' }))
    const unsupported = await run('--client-id', app.id, '--key-id', keyId, '--private-key', curve)
    assert.equal(unsupported.code, 3)
    assert.match(unsupported.stderr, /^Could not get an access token: --private-key is not a usable private key .*the curve P-256\.$/m)
    assert.equal((await service.stats()).accepted, 0)

    const authServer = `${service.url}/oauth2`
    const oauth = ['--client-id', app.id, '--key-id', keyId, '--auth-server', authServer, '--scope', 'tracking_api:write']
    const imported = await start([...oauth, '--private-key', 'env:IMPORT_KEY'], [], { IMPORT_KEY: pem }).ended
    assert.deepEqual([imported.code, imported.stdout], [0, '1200 messages imported, 0 lines rejected.\n'], imported.stderr)
    assert.equal((await run('--client-id', app.id, '--key-id', keyId, '--private-key', key)).code, 0)
    assert.deepEqual([(await service.stats()).accepted, (await service.stats()).duplicates], [1_200, 1_200])
    for (const { stdout, stderr } of [without, stranger, imported]) assert.ok(!/PRIVATE KEY/.test(stdout + stderr))
  })

  test('a large file needs no more memory than a small one', async (t) => {
    await using service = await startService()
    const lines = Array.from({ length: 60_000 }, (_, index) => past(`m-${index}`))
    const { code, stdout, stderr } = await importing(t, service, lines).start([], ['--max-old-space-size=40']).ended
    assert.deepEqual([code, stdout], [0, '60000 messages imported, 0 lines rejected.\n'], stderr)
    assert.equal((await service.stats()).accepted, 60_000)
  })
})
