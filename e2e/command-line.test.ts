// The command line as a person and a script use it: real processes, a real service, real receivers.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { asJson, environment, says, startSwitchyard, switchyard } from './command-line.ts'
import { startReceiver } from './receiver.ts'
import { CLI, runService, type Service, startService, track } from './service.ts'
import { eventually, gate } from './signals.ts'

interface Named {
  id: string
  name: string
  [field: string]: unknown
}

interface Job {
  id: string
  state: string
  total: number
  done: number
  replayed: number
  outcomes: Record<string, number>
}

let service: Service
let folder: string
before(async () => {
  service = await startService()
  folder = mkdtempSync(join(tmpdir(), 'switchyard-cli-'))
})
after(async () => {
  await service[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** A source of its own for a test, so that tests do not see each other's messages. */
async function source(name: string): Promise<{ id: string; key: string }> {
  const { id, writeKeys } = await asJson<Named & { writeKeys: string[] }>(service, 'sources', 'create', name)
  return { id, key: writeKeys[0] as string }
}

suite('A new user', { concurrency: 2 }, () => {
  test('makes a webhook, sends a message, follows it there, and finds it again', async () => {
    await using receiver = await startReceiver()
    await using own = await startService()
    assert.match(await says(own, 'sources'), new RegExp(`ID +NAME[^\\n]*\\n${own.sourceId} +default .*${own.writeKey}`))
    assert.match(await says(own, 'destinations', 'create', 'my webhook', receiver.url), new RegExp(`urls +${receiver.url}`))
    const sent = await says(
      own,
      'send',
      'track',
      '--event',
      'Order Completed',
      '--properties',
      '{"total":42}',
      '--message-id',
      'm-1',
      '--wait',
    )
    for (const part of [
      /received +Received from 127\.0\.0\.1, for the source "default"/,
      /attempted +Attempt 1 at "my webhook"/,
      /delivered +Delivered/,
    ])
      assert.match(sent, part)
    assert.partialDeepStrictEqual(receiver.messages()[0], {
      type: 'track',
      userId: 'user-1',
      event: 'Order Completed',
      properties: { total: 42 },
    })
    assert.match(await says(own, 'trace', 'm-1'), /type +track Order Completed\n[^]*Delivered to "my webhook" at the first attempt/)
    assert.match(await says(own, 'messages', '--from', '1h'), /m-1 .*track +Order Completed +user-1 +1 destination/)
    assert.match(await says(own, 'deliveries', '--destination', 'my webhook'), / delivered .* m-1 /)
    assert.match(await says(own, 'ledger', '--recount'), /my webhook \(dst_\w+\) +1 +1 +0 +0 +0 +0\n/)
    assert.match(await says(own, 'stats', '--source', 'default'), /ACCEPTED[^]* 1 /)
    assert.match(await says(own, 'audit'), /destination\.create +dst_/)
  })

  test('goes from a failed delivery to its cause and a replay in three commands', async () => {
    const { id, key } = await source('three commands')
    await using receiver = await startReceiver(() => ({ status: 422, body: 'unknown event' }))
    const hook = await asJson<Named>(service, 'destinations', 'create', 'three', receiver.url, '--source', id)
    const failed = await switchyard(service, 'send', '--write-key', key, '--message-id', 'three-1', '--wait')
    assert.equal(failed.code, 1, failed.stderr)
    assert.match(failed.stdout, /failed +Failed at "three"/)

    assert.match(await says(service, 'deliveries', '--state', 'failed', '--from', '1h', '--destination', 'three'), /http_422 +1 +three-1/)
    assert.match(await says(service, 'trace', 'three-1'), /http_422.*Its answer began with "unknown event"/)
    receiver.answer = () => undefined
    const replayed = await says(service, 'replay', '--destination', 'three', '--from', '1h')
    assert.match(replayed, /finished, 1 of 1 sent again: 1 delivered\.\n/)

    assert.equal(receiver.byMessageId.get('three-1')?.[1]?.headers['x-replay'], 'true')
    const [delivery] = await asJson<Named[]>(service, 'deliveries', '--destination', hook.id, '--state', 'failed')
    assert.match(
      await says(service, 'deliveries', 'show', delivery?.id ?? ''),
      /http_422 after[^]*it answered: unknown event[^]*The request:[^]*"messageId":"three-1"/,
    )
    assert.match(await says(service, 'replay', delivery?.id ?? ''), /is sent again as /)
    await receiver.until(() => receiver.byMessageId.get('three-1')?.length === 3)
  })

  test('gets help at every level, and a hint after a slip', async () => {
    const help = await says(service, '--help')
    for (const word of ['serve', 'trace', 'tail', 'sources', 'destinations', 'replay', 'deletions', '--json', 'Exit codes'])
      assert.ok(help.includes(word), word)
    assert.match(await says(service, 'sources', '--help'), /sources add-key SOURCE \[KEY\]/)
    assert.match(await says(service, 'destinations', 'create', '--help'), /--shared-secret WHERE[^]*Example/)
    assert.match(await says(service, 'help', 'trace'), /Usage: switchyard trace MESSAGE_ID/)
    const described = JSON.parse(await says(service, '--help', '--json')) as { sections: { commands: Named[] }[] }
    assert.ok(described.sections.flatMap(({ commands }) => commands).some(({ name }) => name === 'sources add-key'))
    const slip = await switchyard(service, 'destinatons')
    assert.deepEqual(
      [slip.code, slip.stdout, slip.stderr.split('\n')[0]],
      [2, '', 'destinatons is not a command. Did you mean destinations?'],
    )
  })
})

suite('Sources, destinations, tokens, OAuth applications', { concurrency: 2 }, () => {
  test('a source is made, changed, gets keys and loses them, and goes', async () => {
    const made = await asJson<Named & { writeKeys: string[] }>(service, 'sources', 'create', 'shop', '--write-key', 'shop-key')
    assert.deepEqual(made.writeKeys, ['shop-key'])
    assert.match(
      await says(service, 'sources', 'update', 'shop', '--name', 'web shop', '--enabled', 'false'),
      /name +web shop\nenabled +no/,
    )
    const added = (await says(service, 'sources', 'add-key', 'web shop')).trim()
    assert.match(await says(service, 'sources', 'show', made.id), new RegExp(`write keys +shop-key, ${added}`))
    await says(service, 'sources', 'remove-key', 'web shop', 'shop-key')
    const last = await switchyard(service, 'sources', 'remove-key', 'web shop', added)
    assert.deepEqual([last.code, /\(last_write_key\)/.test(last.stderr)], [1, true])
    await says(service, 'sources', 'delete', 'web shop')
    assert.equal((await switchyard(service, 'sources', 'show', made.id)).code, 4)
  })

  test('a destination: every setting, secrets from stdin, a file and the environment, and never shown', async () => {
    const { id } = await source('settings')
    await using receiver = await startReceiver()
    writeFileSync(join(folder, 'secret'), 'secret-of-a-file\n')
    const signing = `whsec_${Buffer.alloc(24, 1).toString('base64')}`
    const args = [
      'destinations',
      'create',
      'all settings',
      receiver.url,
      '--source',
      'settings',
      '--header',
      'X-Team: data',
      '--header',
      'Authorization: env:HOOK_AUTH',
    ]
    args.push(
      '--shared-secret',
      `@${join(folder, 'secret')}`,
      '--signing-secret',
      'env:HOOK_SIGNING',
      '--batch-size',
      '10',
      '--batch-linger',
      '50ms',
      '--timeout',
      '2s',
    )
    args.push(
      '--retry-window',
      '1h',
      '--max-in-flight',
      '5',
      '--historical',
      'false',
      '--allow-type',
      'track',
      '--deny-event',
      'Cart Viewed',
      '--json',
    )
    const env = { HOOK_AUTH: 'Bearer in-the-environment', HOOK_SIGNING: signing }
    const made = await startSwitchyard(service, args, { env }).ended
    assert.equal(made.code, 0, made.stderr)
    const shown = JSON.parse(made.stdout) as Named
    assert.partialDeepStrictEqual(shown, {
      sourceIds: [id],
      headers: { 'X-Team': 'data', Authorization: 'Bearer in-the-environment' },
      hasSharedSecret: true,
      signingSecretCount: 1,
      batch: { size: 10, lingerMs: 50 },
      timeoutMs: 2_000,
      retryWindowMs: 3_600_000,
      maxInFlight: 5,
      historical: false,
      filter: { types: { allow: ['track'], deny: [] }, events: { allow: [], deny: ['Cart Viewed'] } },
    })
    const plain = await says(service, 'destinations', 'show', 'all settings')
    assert.doesNotMatch(made.stdout + plain, /secret-of-a-file|whsec_/)
    assert.match(
      plain,
      /headers +X-Team, Authorization\nshared secret +yes\nsigning secrets +1\n[^]*only types +track\nnot events +Cart Viewed/,
    )

    // What is not named stays: the other list, the other header.
    const piped = startSwitchyard(
      service,
      ['destinations', 'update', 'all settings', '--allow-event', 'A', '--remove-header', 'x-team', '--shared-secret', '-', '--json'],
      { input: 'secret-of-stdin\n' },
    )
    const { code, stdout, stderr } = await piped.ended
    assert.equal(code, 0, stderr)
    assert.partialDeepStrictEqual(JSON.parse(stdout), {
      filter: { types: { allow: ['track'], deny: [] }, events: { allow: ['A'], deny: ['Cart Viewed'] } },
      headers: { Authorization: 'Bearer in-the-environment' },
    })
    assert.equal((JSON.parse(stdout) as { headers: object }).headers.hasOwnProperty('X-Team'), false)
    await says(service, 'destinations', 'test', 'all settings')
    const { createHmac } = await import('node:crypto')
    const arrival = receiver.arrivals.at(-1)
    assert.ok(arrival?.headers['x-signature'] !== undefined)
    assert.equal(
      arrival.headers['x-signature'],
      createHmac('sha1', 'secret-of-stdin').update(JSON.stringify(arrival.messages[0])).digest('hex'),
    )

    const refused = await switchyard(service, 'destinations', 'update', 'all settings', '--shared-secret', 'plain-on-the-command-line')
    assert.deepEqual([refused.code, /- for stdin, @FILE, or env:NAME/.test(refused.stderr)], [2, true])
    assert.doesNotMatch(refused.stderr, /plain-on-the-command-line/)
    const cleared = await asJson<Named>(service, 'destinations', 'update', 'all settings', '--no-filter', '--shared-secret', 'none')
    assert.partialDeepStrictEqual(cleared, {
      hasSharedSecret: false,
      filter: { types: { allow: [], deny: [] }, events: { allow: [], deny: [] } },
    })
    for (const list of [['audit', '--subject', shown.id, '--json'], ['audit']])
      assert.doesNotMatch(await says(service, ...list), /secret-of|whsec_/)
  })

  test('a destination is paused, resumed, disabled, enabled, tested and asked for its health', async () => {
    await source('health')
    await using receiver = await startReceiver(() => ({ status: 500, body: 'out of order' }))
    await says(service, 'destinations', 'create', 'health', receiver.url, '--source', 'health', '--paused')
    assert.equal((await asJson<{ paused: boolean }>(service, 'destinations', 'show', 'health')).paused, true)
    assert.match(await says(service, 'destinations', 'resume', 'health'), /^Destination health is resumed\.\n$/)
    assert.match(await says(service, 'destinations', 'pause', 'health'), /^Destination health is paused\.\n$/)
    assert.match(await says(service, 'destinations', 'show', 'health'), /enabled +(true|yes)\n *paused +(true|yes)\n/)
    assert.match(await says(service, 'destinations', 'disable', 'health'), /is disabled\.\n/)
    assert.match(await says(service, 'destinations', 'resume', 'health'), /is resumed\. It is disabled: `switchyard destinations enable /)
    assert.match(await says(service, 'destinations', 'enable', 'health'), /is enabled\.\n/)
    assert.equal((await asJson<{ paused: boolean }>(service, 'destinations', 'show', 'health')).paused, false)
    const bad = await switchyard(service, 'destinations', 'test', 'health')
    assert.equal(bad.code, 1)
    assert.match(bad.stdout, /http_500 after[^]*it answered: out of order[^]*It was not taken\./)
    receiver.answer = () => undefined
    assert.match(await says(service, 'destinations', 'test', 'health', '--type', 'identify'), /It was taken\./)
    assert.match(await says(service, 'destinations', 'health', 'health'), /^breaker +closed\n/)
    await says(service, 'destinations', 'delete', 'health')
    const gone = await switchyard(service, 'destinations', 'show', 'health')
    assert.deepEqual(
      [gone.code, gone.stderr],
      [4, 'There is no destination with the id or name health. `switchyard destinations` lists them.\n'],
    )
  })

  test('a viewer reads and changes nothing; a revoked token is refused', async () => {
    const { id, token } = await asJson<Named & { token: string }>(service, 'tokens', 'create', 'grafana')
    assert.match(await says(service, 'tokens'), new RegExp(`${id} +grafana +viewer +never`))
    const viewer = { url: service.url, token }
    assert.match(await says(viewer, 'ledger', '--json'), /consistent/)
    const refused = await switchyard(viewer, 'sources', 'create', 'no')
    assert.deepEqual([refused.code, refused.stdout], [3, ''])
    assert.match(refused.stderr, /^[A-Z].*\(\w+\)\n$/)
    assert.doesNotMatch(await says(service, 'tokens'), /grafana +viewer +never/, 'it was used')
    assert.match(await says(service, 'tokens', 'revoke', 'grafana'), /is revoked/)
    const unknown = await switchyard(viewer, 'sources')
    assert.deepEqual([unknown.code, /does not know this control token/.test(unknown.stderr)], [3, true])
    assert.doesNotMatch(unknown.stderr, new RegExp(token))
  })

  test('an OAuth application gets its public key, and never the private one', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const [open, secret] = [join(folder, 'public.pem'), join(folder, 'private.pem')]
    writeFileSync(open, publicKey.export({ type: 'spki', format: 'pem' }))
    writeFileSync(secret, privateKey.export({ type: 'pkcs8', format: 'pem' }))
    await source('oauth')
    const refused = await switchyard(service, 'oauth-apps', 'create', 'shop app', '--key', secret)
    assert.deepEqual([refused.code, /This is a private key/.test(refused.stderr)], [2, true])
    const app = await asJson<Named & { keys: Named[] }>(
      service,
      'oauth-apps',
      'create',
      'shop app',
      '--source',
      'oauth',
      '--key',
      open,
      '--key-id',
      'key-1',
    )
    assert.deepEqual(
      app.keys.map(({ id }) => id),
      ['key-1'],
    )
    const [, second = ''] = /Its keyId is (\S+)\./.exec(await says(service, 'oauth-apps', 'add-key', 'shop app', open)) ?? []
    assert.match(await says(service, 'oauth-apps'), new RegExp(`${app.id} +shop app .*key-1, ${second}`))
    await says(service, 'oauth-apps', 'remove-key', 'shop app', second)
    assert.match(await says(service, 'oauth-apps', 'revoke-tokens', 'shop app'), /are revoked/)
    await says(service, 'oauth-apps', 'delete', app.id)
    assert.equal((await switchyard(service, 'oauth-apps', 'show', app.id)).code, 4)
  })
})

suite('Messages', { concurrency: 2 }, () => {
  test('send takes its message from flags, a file and stdin, and says what the service answered', async () => {
    const { id, key } = await source('sending')
    writeFileSync(join(folder, 'traits.json'), '{"plan":"pro"}')
    const env = { SWITCHYARD_WRITE_KEY: key }
    await says(
      service,
      'send',
      'identify',
      '--source',
      'sending',
      '--user-id',
      'u-1',
      '--traits',
      `@${join(folder, 'traits.json')}`,
      '--message-id',
      'sent-1',
    )
    const piped = await startSwitchyard(
      { url: service.url, token: '' },
      ['send', '--event', 'Piped', '--properties', '-', '--message-id', 'sent-2', '--timestamp', '2h'],
      {
        env,
        input: '{"a":1}',
      },
    ).ended
    assert.equal(piped.code, 0, piped.stderr)
    const whole = await startSwitchyard(service, ['send', '--message', '-', '--json'], {
      env,
      input: '{"type":"page","anonymousId":"a","messageId":"sent-3"}',
    }).ended
    assert.deepEqual(JSON.parse(whole.stdout), { messageId: 'sent-3', status: 200, body: { success: true } })
    const messages = await asJson<{ messageId: string; message: object }[]>(service, 'messages', '--source', id)
    assert.deepEqual(
      messages.map(({ messageId }) => messageId),
      ['sent-3', 'sent-2', 'sent-1'],
    )
    assert.partialDeepStrictEqual(messages[2]?.message, { type: 'identify', traits: { plan: 'pro' } })
    assert.partialDeepStrictEqual(messages[1]?.message, { event: 'Piped', properties: { a: 1 } })

    const CASES: [args: string[], code: number, sentence: RegExp][] = [
      [['group', '--user-id', 'u'], 2, /^The service answered 400: .* \(group_id_required\)\n$/],
      [['--properties', '{broken'], 2, /^--properties must be JSON: /],
      [['--properties', '[]'], 2, /^--properties must be a JSON object\.\n$/],
      [['identify', '--properties', '{}'], 2, /^--properties does not go with identify, which has --traits\.\n$/],
      [['--traits', '@/nowhere/at/all'], 2, /^--traits does not go with track/],
      [['--write-key', 'not-a-key'], 3, /\(invalid_write_key\)/],
      [['--timestamp', 'yesterday'], 2, /^--timestamp must be a time/],
    ]
    for (const [args, code, sentence] of CASES) {
      const refused = await switchyard(service, 'send', ...args)
      assert.equal(refused.code, code, args.join(' '))
      assert.match(refused.stderr, sentence)
    }
    assert.match(await says(service, 'rejections', '--source', 'default'), /group_id_required +\d+ +src_/)
    const none = await switchyard({ url: service.url, token: '' }, 'send')
    assert.deepEqual([none.code, /send needs a write key/.test(none.stderr)], [2, true])
  })

  test('send --wait ends with 1 when the message goes nowhere or is not delivered in time', async () => {
    const { key } = await source('waiting')
    const nowhere = await switchyard(service, 'send', '--write-key', key, '--wait')
    assert.deepEqual([nowhere.code, nowhere.stderr], [1, 'It goes to no webhook.\n'])
    assert.match(nowhere.stdout, /skipped +Goes nowhere\. The source has no destination\./)
    await using receiver = await startReceiver(() => ({ status: 503 }))
    await says(service, 'destinations', 'create', 'slow', receiver.url, '--source', 'waiting')
    const late = await switchyard(service, 'send', '--write-key', key, '--wait', '--timeout', '100ms')
    assert.deepEqual([late.code, late.stderr], [1, 'Not delivered within 0.1 s. It is tried on.\n'])
  })

  test('tail shows what is accepted, rejected and attempted, and ends with Ctrl-C', async () => {
    const { id, key } = await source('tailing')
    await using receiver = await startReceiver()
    await says(service, 'destinations', 'create', 'tailed', receiver.url, '--source', id)
    await using people = startSwitchyard(service, ['tail', '--source', 'tailing'])
    await using programs = startSwitchyard(service, ['tail', '--source', 'tailing', '--json', '--count', '2'])
    const batch = (number: number): Promise<unknown> =>
      service.post('/v1/batch', JSON.stringify({ batch: [track(`tail-${number}`), { type: 'group', userId: 'u' }], writeKey: key }), {
        authorization: '',
      })
    // Whether it listens already can only be seen by what it shows.
    let number = 0
    await eventually(
      async () => void (await batch((number += 1))),
      () => /delivered/.test(people.stdout()) && programs.stdout().split('\n').length > 2,
      { what: 'lines of both' },
    )
    await people.printed(/^\d\d:\d\d:\d\d\.\d{3} {2}accepted {3}tail-\d+ {2}track Tested {2}user of tail-\d+ {2}from src_/m)
    await people.printed(/rejected {3}group_id_required/)
    await people.printed(/delivered {2}tail-\d+ {2}to tailed http:\/\/127\.0\.0\.1:\d+\/: 200 after /)
    people.kill('SIGINT')
    assert.deepEqual([(await people.ended).code, (await people.ended).stderr], [0, ''])
    const { code, stdout } = await programs.ended
    assert.equal(code, 0)
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { what: string })
    assert.equal(lines.length, 2)
    for (const { what } of lines) assert.ok(['accepted', 'rejected', 'attempt'].includes(what), what)
  })

  test('tail into a program that reads one line ends without a word', async () => {
    const child = spawn('sh', ['-c', '"$0" "$1" tail --json | head -n 1', process.execPath, CLI], {
      env: environment(service),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let [stdout, stderr, isOver] = ['', '', false]
    child.stdout.on('data', (part: Buffer) => (stdout += part.toString()))
    child.stderr.on('data', (part: Buffer) => (stderr += part.toString()))
    const closed = new Promise((resolve) => child.on('close', resolve)).then(() => (isOver = true))
    let number = 0
    await eventually(
      () => service.send([track(`piped-${(number += 1)}`)]),
      () => isOver,
      { what: 'the end of the pipe' },
    )
    await closed
    assert.deepEqual([stdout.split('\n').length, stderr], [2, ''])
  })

  test('tail does not keep the service from stopping, and goes on when it is there again', async () => {
    await using first = await startService()
    await using tail = startSwitchyard(first, ['tail', '--type', 'track'])
    let number = 0
    const shown = (service: Service, pattern: RegExp): Promise<unknown> =>
      eventually(
        () => service.send([track(`again-${(number += 1)}`)]),
        () => pattern.test(tail.stdout()),
        { what: String(pattern) },
      )
    await shown(first, /again-/)
    const { code, ms } = await first.stop()
    assert.deepEqual([code, ms < 10_000], [0, true])
    const before = number
    const second = await first.restart({ args: ['--port', new URL(first.url).port] })
    assert.equal(second.url, first.url)
    await shown(second, new RegExp(`again-(?!(${Array.from({ length: before }, (_, index) => index + 1).join('|')}) )`))
    tail.kill('SIGTERM')
    assert.deepEqual([(await tail.ended).code, (await tail.ended).stderr], [0, ''])
  })

  test('what a sender chose cannot steer the terminal of whoever reads it', async () => {
    const { key } = await source('hostile')
    const event = 'Red\x1b[31m\x1b]0;owned\x07\r\u202egnp'
    const body = JSON.stringify({ batch: [{ type: 'track', userId: '\x1b[2J', event, messageId: 'hostile-1' }], writeKey: key })
    assert.equal((await service.post('/v1/batch', body, { authorization: '' })).status, 200)
    for (const args of [
      ['messages', '--source', 'hostile'],
      ['trace', 'hostile-1'],
      ['messages', '--source', 'hostile', '--json'],
    ])
      assert.doesNotMatch((await says(service, ...args)).replaceAll('\n', ''), /[\p{Cc}\u202e]/u, args.join(' '))
    const [message] = await asJson<{ event: string }[]>(service, 'messages', '--source', 'hostile')
    assert.equal(message?.event, event, 'as JSON it is what was sent')
  })
})

suite('Replays, deletions, suppressions', { concurrency: 2 }, () => {
  test('a replay job is counted, paused, resumed, cancelled and followed', async () => {
    const { id, key } = await source('replaying')
    await using receiver = await startReceiver(() => ({ status: 400 }))
    const hook = await asJson<Named>(service, 'destinations', 'create', 'replayed', receiver.url, '--source', id)
    const batch = Array.from({ length: 20 }, (_, index) => track(`replay-${index}`))
    await service.post('/v1/batch', JSON.stringify({ batch, writeKey: key }), { authorization: '' })
    await eventually(
      () => asJson<Named[]>(service, 'deliveries', '--destination', hook.id, '--state', 'failed'),
      (rows) => rows.length === 20,
    )
    assert.match(await says(service, 'replay', '--destination', 'replayed', '--dry-run'), /^20 match\./)
    assert.match(await says(service, 'replay', '--destination', 'replayed', '--to', '1h', '--dry-run'), /^0 match\./)

    const slow = await asJson<Job>(service, 'replay', '--destination', 'replayed', '--rate', '1', '--detach')
    assert.equal((await asJson<Job>(service, 'replay', 'pause', slow.id)).state, 'paused')
    assert.match(await says(service, 'replay', 'list'), new RegExp(`${slow.id} +paused +\\d+ of 20`))
    assert.equal((await asJson<Job>(service, 'replay', 'resume', slow.id)).state, 'running')
    await using following = startSwitchyard(service, ['replay', 'show', slow.id, '--wait'])
    assert.match(await says(service, 'replay', 'cancel', slow.id), /state +cancelled/)
    assert.equal((await following.ended).code, 1, 'it was cancelled')

    receiver.answer = () => undefined
    const job = await asJson<Job>(service, 'replay', '--destination', 'replayed', '--state', 'failed')
    assert.equal(job.state, 'finished')
    assert.equal(job.outcomes['delivered'], job.replayed)
    await receiver.until(() => batch.every((_, index) => receiver.byMessageId.get(`replay-${index}`)?.at(-1)?.status === 200))
    // Named ones, by way of a pipe.
    const failed = await asJson<Named[]>(service, 'deliveries', '--destination', hook.id, '--state', 'failed', '--limit', '2')
    const input = failed.map(({ id }) => id).join('\n')
    const piped = await startSwitchyard(service, ['replay', '-', '--dry-run', '--json'], { input }).ended
    assert.partialDeepStrictEqual(JSON.parse(piped.stdout), { dryRun: true, total: 2, alreadyReplayed: 2 })
    const none = await switchyard(service, 'replay')
    assert.deepEqual([none.code, /replay needs DELIVERY_IDs/.test(none.stderr)], [2, true])
    const both = await switchyard(service, 'replay', '1-0', '--destination', 'replayed')
    assert.deepEqual([both.code, both.stderr], [2, 'Give DELIVERY_IDs or --destination, not both.\n'])
    const missing = await switchyard(service, 'replay', '999999-0')
    assert.deepEqual([missing.code, /delivery_not_found/.test(missing.stderr)], [4, true])
  })

  test('Ctrl-C while a replay is followed leaves the job, and says how to find it', async () => {
    const { id, key } = await source('interrupting')
    await using receiver = await startReceiver(() => ({ status: 400 }))
    const hook = await asJson<Named>(service, 'destinations', 'create', 'interrupted', receiver.url, '--source', id)
    const batch = Array.from({ length: 50 }, (_, index) => track(`interrupt-${index}`))
    await service.post('/v1/batch', JSON.stringify({ batch, writeKey: key }), { authorization: '' })
    await eventually(
      () => asJson<Named[]>(service, 'deliveries', '--destination', hook.id, '--state', 'failed'),
      (rows) => rows.length === 50,
    )
    await using replay = startSwitchyard(service, ['replay', '--destination', 'interrupted', '--rate', '1'])
    const [job] = await eventually(
      async () =>
        (await asJson<(Job & { destinationId: string })[]>(service, 'replay', 'list')).filter(
          ({ destinationId }) => destinationId === hook.id,
        ),
      (jobs) => jobs.length > 0,
    )
    replay.kill('SIGINT')
    const { code, stderr } = await replay.ended
    assert.deepEqual([code, stderr.includes(`switchyard replay show ${job?.id} --wait`)], [130, true], stderr)
    assert.equal((await asJson<Job>(service, 'replay', 'show', job?.id ?? '')).state, 'running')
    await says(service, 'replay', 'cancel', job?.id ?? '')
  })

  test('users are deleted, suppressed, and taken again', async () => {
    const { id, key } = await source('forgetting')
    const { opened, open } = gate()
    await using receiver = await startReceiver(() => ({ after: opened }))
    await says(service, 'destinations', 'create', 'told', receiver.url, '--source', id)
    writeFileSync(join(folder, 'users'), 'forget-1\nforget-2\n')
    await using deletion = startSwitchyard(service, [
      'deletions',
      'create',
      `@${join(folder, 'users')}`,
      '--source',
      'forgetting',
      '--suppress',
      '--wait',
    ])
    await receiver.until(() => receiver.arrivals.length === 2)
    open()
    const { code, stdout, stderr } = await deletion.ended
    assert.equal(code, 0, stderr)
    assert.match(stdout, /state +finished\nusers +2\n[^]*forget-1 +src_\w+ +dst_\w+ +finished/)
    assert.deepEqual(
      new Set(receiver.messages().map(({ type, userId }) => `${type} ${String(userId)}`)),
      new Set(['delete forget-1', 'delete forget-2']),
    )
    const [listed] = await asJson<Named[]>(service, 'deletions')
    assert.match(await says(service, 'deletions', 'show', listed?.id ?? ''), /purged messages[^]*told +2 finished/)

    assert.match(await says(service, 'suppressions'), /forget-1/)
    await says(service, 'suppressions', 'add', 'quiet', '--source', 'forgetting')
    await says(service, 'send', '--write-key', key, '--user-id', 'quiet', '--message-id', 'quiet-1')
    assert.equal((await switchyard(service, 'trace', 'quiet-1')).code, 4)
    assert.match(await says(service, 'suppressions', 'remove', 'quiet'), /are taken again/)
    await says(service, 'send', '--write-key', key, '--user-id', 'quiet', '--message-id', 'quiet-2')
    await says(service, 'trace', 'quiet-2')
    assert.equal((await switchyard(service, 'suppressions', 'remove', 'quiet')).code, 4)
  })
})

suite('The process', { concurrency: 2 }, () => {
  test('what cannot be done is one sentence on stderr, nothing on stdout, and its own exit code', async () => {
    const closed = createServer()
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
    const { port } = closed.address() as { port: number }
    await new Promise((resolve) => closed.close(resolve))
    const CASES: [title: string, code: number, service: { url: string; token: string }, args: string[], sentence: RegExp][] = [
      [
        'no service',
        3,
        { url: `http://127.0.0.1:${port}`, token: 't' },
        ['sources'],
        /^No service answers at http:\/\/127\.0\.0\.1:\d+\. Is it running\? Start it with `switchyard serve`/,
      ],
      ['no service to send to', 3, { url: `http://127.0.0.1:${port}`, token: 't' }, ['send', '--write-key', 'k'], /^No service answers/],
      ['no service to tail', 3, { url: `http://127.0.0.1:${port}`, token: 't' }, ['tail'], /^No service answers/],
      ['no token', 3, { url: service.url, token: '' }, ['sources'], /wants a control token/],
      ['a wrong token', 3, { url: service.url, token: 'wrong' }, ['tail'], /does not know this control token/],
      ['a message that is not there', 4, service, ['trace', 'nowhere/at?all#'], /\(message_not_found\)/],
      ['a bad value', 2, service, ['sources', 'create', ' '], /name.*\(invalid_field\)/],
      ['a bad url', 2, { url: 'nonsense', token: '' }, ['sources'], /^SWITCHYARD_URL must be the address of a service/],
      ['nothing to change', 2, service, ['sources', 'update', 'default'], /^Nothing to change was given\./],
      ['a bad time', 2, service, ['deliveries', '--from', 'noon'], /^--from must be a time/],
    ]
    for (const [title, code, target, args, sentence] of CASES) {
      const ended = await switchyard(target, ...args, '--json')
      assert.deepEqual([title, ended.code, ended.stdout], [title, code, ''], ended.stderr)
      assert.match(ended.stderr, sentence, title)
      assert.equal(ended.stderr.trimEnd().split('\n').length, 1, ended.stderr)
    }
  })

  test('with --json every list is an array, and an empty one too', async () => {
    await using own = await startService()
    for (const list of [
      'sources',
      'destinations',
      'messages',
      'deliveries',
      'deletions',
      'suppressions',
      'tokens',
      'oauth-apps',
      'audit',
      'replay list',
    ]) {
      const { code, stdout, stderr } = await switchyard(own, ...list.split(' '), '--json')
      assert.deepEqual([list, code, Array.isArray(JSON.parse(stdout)), stderr], [list, 0, true, ''])
    }
  })

  test('serve is a command like others: with its flags, and its start as JSON', async () => {
    const file = join(folder, 'served.db')
    const run = runService({ args: ['serve', '--json', '--port', '0', '--store', `sqlite:${file}`, '--log', 'error'] })
    await run.signals.until(() => run.stdout().includes('\n'))
    const start = JSON.parse(run.stdout()) as { url: string; adminToken: string; source: { writeKeys: string[] } }
    assert.match(start.adminToken, /^sy_/)
    assert.match(await says({ url: start.url, token: start.adminToken }, 'sources'), new RegExp(start.source.writeKeys[0] ?? '?'))
    run.kill('SIGTERM')
    assert.deepEqual([(await run.ended).code, (await run.ended).stderr], [0, ''])
  })

  test('the launcher passes on arguments, input, exit code and signals', async () => {
    const launcher = join(import.meta.dirname, '..', 'packages', 'server', 'bin', 'switchyard.mjs')
    const env = environment(service)
    const version = spawnSync(process.execPath, [launcher, '--version'], { env, encoding: 'utf8' })
    const { version: expected } = JSON.parse(readFileSync(join(launcher, '..', '..', 'package.json'), 'utf8')) as { version: string }
    assert.deepEqual([version.status, version.stdout, version.stderr], [0, `${expected}\n`, ''])
    const piped = spawnSync(process.execPath, [launcher, 'send', '--properties', '-', '--message-id', 'launched'], {
      env,
      input: '{"by":"launcher"}',
      encoding: 'utf8',
    })
    assert.equal(piped.status, 0, piped.stderr)
    assert.partialDeepStrictEqual(await asJson(service, 'trace', 'launched'), { message: { properties: { by: 'launcher' } } })
    assert.equal(spawnSync(process.execPath, [launcher, 'trace', 'missing'], { env }).status, 4)

    const served = spawn(
      process.execPath,
      [launcher, '--port', '0', '--log', 'error', '--store', `sqlite:${join(folder, 'launched.db')}`],
      {
        env: environment(null),
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    const ended = new Promise((resolve) => served.on('close', (...how) => resolve(how)))
    let printed = ''
    await new Promise<void>((resolve) => {
      served.stdout.on('data', (part: Buffer) => {
        printed += part.toString()
        if (/listens on \S+/.test(printed)) resolve()
      })
    })
    served.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
  })

  test('completion of the real commands works in bash', {
    skip: spawnSync('bash', ['-c', 'true']).status === 0 ? false : 'there is no bash',
  }, async () => {
    const script = await says(service, 'completion', 'bash')
    const offered = (...words: string[]): string[] => {
      const ask = `COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _switchyard; printf '%s\\n' "\${COMPREPLY[@]}"`
      const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', `${script}\n${ask}`, 'bash', 'switchyard', ...words], {
        encoding: 'utf8',
      })
      assert.equal(stderr, '')
      return stdout.trimEnd().split('\n')
    }
    assert.deepEqual(offered('dest'), ['destinations'])
    assert.deepEqual(offered('destinations', 'dis'), ['disable'])
    assert.deepEqual(offered('deliveries', '--sta'), ['--state'])
    assert.deepEqual(offered('deliveries', '--state', 'exp'), ['expired'])
    assert.deepEqual(offered('completion', 'z'), ['zsh'])
    assert.deepEqual(offered('tokens', 'create', 'x', '--role', ''), ['admin', 'viewer'])
  })
})
