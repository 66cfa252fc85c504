// The command line as people and scripts use it, with real processes, a real service and real receivers. The commands that create and
// change resources are tested in resources.test.ts.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { freePort } from '../../packages/server/src/store/fixtures/free-port.ts'
import { asJson, environment, type Named, newSource, says, startSwitchyard, switchyard } from '../system/command-line.ts'
import { STOPPED_WITHIN_MS } from '../system/long-tests.ts'
import { startReceiver } from '../system/receiver.ts'
import { CLI, runService, type Service, startService, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

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

suite('A new user', { concurrency: 2 }, () => {
  test('creates a webhook, sends a message, waits for its delivery, and finds it again', async () => {
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
      /attempted +Attempt 1 to "my webhook"/,
      /delivered +Delivered/,
    ])
      assert.match(sent, part)
    assert.partialDeepStrictEqual(receiver.messages()[0], {
      type: 'track',
      userId: 'user-1',
      event: 'Order Completed',
      properties: { total: 42 },
    })
    assert.match(await says(own, 'trace', 'm-1'), /type +track Order Completed\n[^]*Delivered to "my webhook" on the first attempt/)
    assert.match(await says(own, 'messages', '--from', '1h'), /m-1 .*track +Order Completed +user-1 +1\n/)
    assert.match(await says(own, 'events', '--search', 'order'), /Order Completed +track +default +·+█ +1 +1 +1 /)
    assert.match(await says(own, 'events', 'Order Completed'), /total +100 % +number .* 42\n[^]*my webhook +1 of the last 1/)
    assert.match(await says(own, 'deliveries', '--destination', 'my webhook'), / delivered .* m-1 /)
    assert.match(await says(own, 'ledger', '--recount'), /my webhook \(dst_\w+\) +1 +1 +0 +0 +0 +0 +0\n/)
    assert.match(await says(own, 'stats', '--source', 'default'), /ACCEPTED[^]* 1 /)
    assert.match(await says(own, 'audit'), /destination\.create +dst_/)
  })

  test('goes from a failed delivery to its cause and a replay in three commands', async () => {
    const { id, key } = await newSource(service, 'three commands')
    await using receiver = await startReceiver(() => ({ status: 422, body: 'unknown event' }))
    const hook = await asJson<Named>(service, 'destinations', 'create', 'three', receiver.url, '--source', id)
    const failed = await switchyard(service, 'send', '--write-key', key, '--message-id', 'three-1', '--wait')
    assert.equal(failed.code, 1, failed.stderr)
    assert.match(failed.stdout, /failed +Delivery to "three" failed .*\(http_422\)/)

    assert.match(await says(service, 'deliveries', '--state', 'failed', '--from', '1h', '--destination', 'three'), /http_422 +1 +three-1/)
    assert.match(await says(service, 'trace', 'three-1'), /http_422.*The response began with "unknown event"/)
    receiver.answer = () => undefined
    const replayed = await says(service, 'replay', '--destination', 'three', '--from', '1h')
    assert.match(replayed, /finished, 1 of 1 replayed: 1 delivered\.\n/)

    assert.equal(receiver.byMessageId.get('three-1')?.[1]?.headers['x-replay'], 'true')
    const [delivery] = await asJson<Named[]>(service, 'deliveries', '--destination', hook.id, '--state', 'failed')
    assert.match(
      await says(service, 'deliveries', 'show', delivery?.id ?? ''),
      /http_422 after[^]*response: unknown event[^]*Request:[^]*"messageId":"three-1"/,
    )
    assert.match(await says(service, 'messages', '--from', '1h'), /three-1 .* 1\n/, 'one destination, two deliveries')
    assert.match(await says(service, 'replay', delivery?.id ?? ''), /^Replaying \S+ as delivery /)
    await receiver.until(() => receiver.byMessageId.get('three-1')?.length === 3)
  })

  test('gets help at every level, and a suggestion after a typo', async () => {
    const help = await says(service, '--help')
    for (const word of ['serve', 'trace', 'tail', 'sources', 'destinations', 'replay', 'deletions', '--json', 'Exit codes'])
      assert.ok(help.includes(word), word)
    assert.match(await says(service, 'sources', '--help'), /sources add-key SOURCE \[KEY\]/)
    assert.match(await says(service, 'destinations', 'create', '--help'), /--shared-secret WHERE[^]*Example/)
    assert.match(await says(service, 'help', 'trace'), /Usage: \S+switchyard trace MESSAGE_ID/)
    const described = JSON.parse(await says(service, '--help', '--json')) as { sections: { commands: Named[] }[] }
    assert.ok(described.sections.flatMap(({ commands }) => commands).some(({ name }) => name === 'sources add-key'))
    const slip = await switchyard(service, 'destinatons')
    assert.deepEqual(
      [slip.code, slip.stdout, slip.stderr.split('\n')[0]],
      [2, '', 'Unknown command: destinatons. Did you mean destinations?'],
    )
  })
})

suite('Messages', { concurrency: 2 }, () => {
  test('send reads its message from flags, a file and stdin, and prints the response', async () => {
    const { id, key } = await newSource(service, 'sending')
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
    const timed = await switchyard(
      service,
      'send',
      '--source',
      id,
      '--message',
      '{"type":"page","userId":"u","messageId":"sent-4","timestamp":"yesterday"}',
    )
    assert.equal(timed.code, 0, timed.stderr)
    assert.match(timed.stderr, /^Warning: timestamp is not a valid time, so it is ignored\./)
    assert.match(await says(service, 'stats', '--source', id), /WARNINGS[^]* 1 timestamp_invalid/)
    const metrics = await fetch(`${service.url}/metrics`, { headers: { authorization: `Bearer ${service.token}` } })
    assert.match(
      await metrics.text(),
      new RegExp(`^switchyard_message_warnings_total\\{source="${id}",code="timestamp_invalid"\\} 1$`, 'm'),
    )
    const messages = (await asJson<{ messageId: string; message: object }[]>(service, 'messages', '--source', id)).slice(1)
    assert.deepEqual(
      messages.map(({ messageId }) => messageId),
      ['sent-3', 'sent-2', 'sent-1'],
    )
    assert.partialDeepStrictEqual(messages[2]?.message, { type: 'identify', traits: { plan: 'pro' } })
    assert.partialDeepStrictEqual(messages[1]?.message, { event: 'Piped', properties: { a: 1 } })

    const CASES: [args: string[], code: number, sentence: RegExp][] = [
      [['group', '--user-id', 'u'], 2, /^The service answered 400: .* \(group_id_required\)\n$/],
      [['--properties', '{broken'], 2, /^--properties is not valid JSON: /],
      [['--properties', '[]'], 2, /^--properties must be a JSON object\.\n$/],
      [['identify', '--properties', '{}'], 2, /^--properties cannot be used with identify; use --traits\.\n$/],
      [['--traits', '@/nowhere/at/all'], 2, /^--traits cannot be used with track/],
      [['--write-key', 'not-a-key'], 3, /\(invalid_write_key\)/],
      [['--timestamp', 'yesterday'], 2, /^--timestamp must be a time/],
      [['--write-key', key, '--url', service.url.replace('http:', 'https:')], 3, /does not use TLS\. Use http:/],
      [['--write-key', key, '--url', `${service.url}/api`], 3, /has no endpoint \/v1\/batch\. Leave out \/api and use http:/],
    ]
    for (const [args, code, sentence] of CASES) {
      const refused = await switchyard(service, 'send', ...args)
      assert.equal(refused.code, code, args.join(' '))
      assert.match(refused.stderr, sentence)
    }
    // Rejections are recorded in the background.
    await eventually(
      () => says(service, 'rejections', '--source', 'default'),
      (text) => /group_id_required +\d+ +src_/.test(text),
      { what: 'the rejection is listed' },
    )
    const none = await switchyard({ url: service.url, token: '' }, 'send')
    assert.deepEqual([none.code, none.stderr.startsWith('A write key is missing.')], [2, true])
  })

  test('send --wait exits with 1 if the message has no destination or is not delivered in time', async () => {
    const { key } = await newSource(service, 'waiting')
    const nowhere = await switchyard(service, 'send', '--write-key', key, '--wait')
    assert.deepEqual([nowhere.code, nowhere.stderr], [1, 'The message has no destination.\n'])
    assert.match(nowhere.stdout, /skipped +Not sent to any destination\. The source has no destination\./)
    await using receiver = await startReceiver(() => ({ status: 503 }))
    await says(service, 'destinations', 'create', 'slow', receiver.url, '--source', 'waiting')
    const late = await switchyard(service, 'send', '--write-key', key, '--wait', '--timeout', '100ms')
    assert.equal(late.code, 1)
    assert.match(
      late.stderr,
      /^1 delivery is still pending after 0\.1 s\. The service keeps retrying; run `\S+switchyard trace \S+` to check again\.\n$/,
    )
    // The reason of the last attempt, because the delivery itself has none yet.
    const listed = await eventually(
      () => says(service, 'deliveries', '--destination', 'slow', '--state', 'pending'),
      (text) => / pending +http_503 +\d+ /.test(text),
      { what: 'the reason is listed' },
    )
    const [, id = ''] = /^(\S+) +pending/m.exec(listed) ?? []
    assert.match(await says(service, 'deliveries', 'show', id), /state +pending\nreason +http_503\n/)
  })

  test('send --wait prints each attempt and its cause as soon as it has ended', async () => {
    const { id, key } = await newSource(service, 'dead receiver')
    const port = await freePort()
    await says(service, 'destinations', 'create', 'dead', `http://127.0.0.1:${port}/`, '--source', id)
    await using waiting = startSwitchyard(service, ['send', '--write-key', key, '--message-id', 'dead-1', '--wait'])
    // It is still running: the delivery is pending, and the command waits for 60 s.
    await waiting.printed(/^Accepted: track dead-1\n[^]*attempted +Attempt 1 to "dead": .*connection_refused.*\n/)
    await waiting.printed(/waiting +Waiting for attempt 2 to "dead", due at /)
    assert.equal(waiting.child.exitCode, null)
    assert.match(await says(service, 'deliveries', '--destination', 'dead'), / pending +connection_refused +\d+ +dead-1 /)
    waiting.kill('SIGINT')
    assert.equal((await waiting.ended).code, 130)

    await using receiver = await startReceiver()
    await says(service, 'destinations', 'update', 'dead', '--webhook', receiver.url)
    const { key: good } = await newSource(service, 'live receiver')
    await says(service, 'destinations', 'create', 'live', receiver.url, '--source', 'live receiver')
    const program = await switchyard(service, 'send', '--write-key', good, '--message-id', 'live-1', '--wait', '--json')
    assert.equal((JSON.parse(program.stdout) as Named)['messageId'], 'live-1')
    assert.match(program.stderr, /^Accepted: track live-1\n[^]*delivered +Delivered to "live" on the first attempt\.\n/)
  })

  test('tail shows accepted messages, rejections and attempts, and ends with Ctrl-C', async () => {
    const { id, key } = await newSource(service, 'tailing')
    await using receiver = await startReceiver()
    await says(service, 'destinations', 'create', 'tailed', receiver.url, '--source', id)
    await using people = startSwitchyard(service, ['tail', '--source', 'tailing'])
    await using programs = startSwitchyard(service, ['tail', '--source', 'tailing', '--json', '--count', '2'])
    const batch = (number: number): Promise<unknown> =>
      service.post('/v1/batch', JSON.stringify({ batch: [track(`tail-${number}`), { type: 'group', userId: 'u' }], writeKey: key }), {
        authorization: '',
      })
    // Only its output shows whether it is connected already.
    let number = 0
    await eventually(
      async () => void (await batch((number += 1))),
      () => /delivered/.test(people.stdout()) && programs.stdout().split('\n').length > 2,
      { what: 'lines from both' },
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

  test('tail piped into a program that reads one line ends silently', async () => {
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
      { what: 'the pipe to close' },
    )
    await closed
    assert.deepEqual([stdout.split('\n').length, stderr], [2, ''])
  })

  test('tail does not keep the service from stopping, and continues after a restart', async () => {
    const port = ['--port', String(await freePort())]
    await using first = await startService({ args: port })
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
    assert.deepEqual([code, ms < STOPPED_WITHIN_MS], [0, true])
    const before = number
    const second = await first.restart({ args: port })
    assert.equal(second.url, first.url)
    await shown(second, new RegExp(`again-(?!(${Array.from({ length: before }, (_, index) => index + 1).join('|')}) )`))
    tail.kill('SIGTERM')
    assert.deepEqual([(await tail.ended).code, (await tail.ended).stderr], [0, ''])
  })

  test('text from a sender cannot control the terminal of the reader', async () => {
    const { key } = await newSource(service, 'hostile')
    const event = 'Red\x1b[31m\x1b]0;owned\x07\r\u202egnp'
    const body = JSON.stringify({ batch: [{ type: 'track', userId: '\x1b[2J', event, messageId: 'hostile-1' }], writeKey: key })
    assert.equal((await service.post('/v1/batch', body, { authorization: '' })).status, 200)
    for (const args of [
      ['messages', '--source', 'hostile'],
      ['trace', 'hostile-1'],
      ['events', '--source', 'hostile'],
      ['events', event, '--source', 'hostile'],
      ['messages', '--source', 'hostile', '--json'],
    ])
      assert.doesNotMatch((await says(service, ...args)).replaceAll('\n', ''), /[\p{Cc}\u202e]/u, args.join(' '))
    const [message] = await asJson<{ event: string }[]>(service, 'messages', '--source', 'hostile')
    assert.equal(message?.event, event, 'JSON output has the original value')
  })
})

suite('The process', { concurrency: 2 }, () => {
  test('an error is one line on stderr, nothing on stdout, and its own exit code', async () => {
    const port = await freePort()
    const CASES: [title: string, code: number, service: { url: string; token: string }, args: string[], sentence: RegExp][] = [
      [
        'no service',
        3,
        { url: `http://127.0.0.1:${port}`, token: 't' },
        ['sources'],
        /^Cannot reach a service at http:\/\/127\.0\.0\.1:\d+\. Start one with `.*switchyard serve`/,
      ],
      [
        'no service to send to',
        3,
        { url: `http://127.0.0.1:${port}`, token: 't' },
        ['send', '--write-key', 'k'],
        /^Cannot reach a service/,
      ],
      ['no service to tail', 3, { url: `http://127.0.0.1:${port}`, token: 't' }, ['tail'], /^Cannot reach a service/],
      ['no token', 3, { url: service.url, token: '' }, ['sources'], /requires a control token/],
      ['a wrong token', 3, { url: service.url, token: 'wrong' }, ['tail'], /rejected this control token/],
      ['a missing event', 4, service, ['events', 'Nothing Like It'], /^The event catalogue has no event with the name Nothing Like It/],
      ['a missing message', 4, service, ['trace', 'nowhere/at?all#'], /\(message_not_found\)/],
      ['a bad value', 2, service, ['sources', 'create', ' '], /name.*\(invalid_field\)/],
      ['a bad url', 2, { url: 'nonsense', token: '' }, ['sources'], /^SWITCHYARD_URL must be the http:/],
      ['nothing to change', 2, service, ['sources', 'update', 'default'], /^Nothing to change: use --name/],
      ['a bad time', 2, service, ['deliveries', '--from', 'noon'], /^--from must be a time/],
    ]
    for (const [title, code, target, args, sentence] of CASES) {
      const ended = await switchyard(target, ...args, '--json')
      assert.deepEqual([title, ended.code, ended.stdout], [title, code, ''], ended.stderr)
      assert.match(ended.stderr, sentence, title)
      assert.equal(ended.stderr.trimEnd().split('\n').length, 1, ended.stderr)
    }
  })

  test('with --json every list is an array, even an empty one', async () => {
    await using own = await startService()
    for (const list of [
      'sources',
      'destinations',
      'messages',
      'events',
      'deliveries',
      'deletions',
      'suppressions',
      'tokens',
      'oauth-apps',
      'audit',
      'replay list',
    ]) {
      const { code, stdout, stderr } = await switchyard(own, ...list.split(' '), '--json')
      // On a busy machine, a command may report that it waits for the service.
      const others = stderr.replaceAll(/^Waiting for the service: .*\n/gm, '')
      assert.deepEqual([list, code, Array.isArray(JSON.parse(stdout)), others], [list, 0, true, ''])
    }
  })

  test('serve accepts its flags, and prints its start message as JSON with --json', async () => {
    const file = join(folder, 'served.db')
    const run = runService({ args: ['serve', '--json', '--port', '0', '--store', `sqlite:${file}`, '--log', 'error'] })
    await run.signals.until(() => run.stdout().includes('\n'))
    const start = JSON.parse(run.stdout()) as { url: string; adminToken: string; source: { writeKeys: string[] } }
    assert.match(start.adminToken, /^sy_/)
    assert.match(await says({ url: start.url, token: start.adminToken }, 'sources'), new RegExp(start.source.writeKeys[0] ?? '?'))
    run.kill('SIGTERM')
    assert.deepEqual([(await run.ended).code, (await run.ended).stderr], [0, ''])
  })

  test('the launcher forwards arguments, input, exit code and signals', async () => {
    const launcher = join(import.meta.dirname, '..', '..', 'packages', 'server', 'bin', 'switchyard.mjs')
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
})
