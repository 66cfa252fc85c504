// The commands that create, change and delete resources (sources, destinations, tokens, OAuth applications, replays, deletions), against a
// real service and real receivers.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { commandForm } from '../../packages/server/src/installation/command-form.ts'
import { asJson, type Named, newSource, says, startSwitchyard, switchyard } from '../system/command-line.ts'
import { startReceiver } from '../system/receiver.ts'
import { type Service, startService, track } from '../system/service.ts'
import { eventually, gate } from '../system/signals.ts'

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

suite('Sources, destinations, tokens, OAuth applications', { concurrency: 2 }, () => {
  test('a source is created, changed, gets and loses write keys, and is deleted', async () => {
    const made = await asJson<Named & { writeKeys: string[] }>(service, 'sources', 'create', 'shop', '--write-key', 'shop-key')
    assert.deepEqual(made.writeKeys, ['shop-key'])
    assert.match(
      await says(service, 'sources', 'update', 'shop', '--name', 'web shop', '--enabled', 'false'),
      /name +web shop\nenabled +no/,
    )
    const rules = ['--privacy', 'traits.email=hash', '--privacy', 'properties.a=b=drop']
    assert.match(await says(service, 'sources', 'update', 'web shop', ...rules), /privacy +traits\.email=hash, properties\.a=b=drop\n/)
    assert.match(await says(service, 'sources', 'update', 'web shop', '--no-privacy'), /privacy +–\n/)
    assert.equal((await switchyard(service, 'sources', 'update', 'web shop', '--privacy', 'traits.email')).code, 2)
    assert.equal((await switchyard(service, 'sources', 'update', 'web shop', '--privacy', 'userId=drop')).code, 2)
    const added = (await says(service, 'sources', 'add-key', 'web shop')).trim()
    assert.match(await says(service, 'sources', 'show', made.id), new RegExp(`write keys +shop-key, ${added}`))
    await says(service, 'sources', 'remove-key', 'web shop', 'shop-key', '--yes')
    const last = await switchyard(service, 'sources', 'remove-key', 'web shop', added, '--yes')
    assert.deepEqual([last.code, /\(last_write_key\)/.test(last.stderr)], [1, true])
    await says(service, 'sources', 'delete', 'web shop', '--yes')
    assert.equal((await switchyard(service, 'sources', 'show', made.id)).code, 4)
  })

  test('a destination: every setting, and secrets from stdin, a file and the environment, which are never shown', async () => {
    const { id } = await newSource(service, 'settings')
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
      /headers +X-Team, Authorization\nsecrets +–\nshared secret +yes\nsigning secrets +1\n[^]*allowed types +track\ndenied events +Cart Viewed/,
    )

    // Settings that are not given stay: the other list, the other header.
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
    assert.deepEqual([refused.code, /- for stdin, @FILE or env:NAME\. Do not give the secret itself/.test(refused.stderr)], [2, true])
    assert.doesNotMatch(refused.stderr, /plain-on-the-command-line/)
    const cleared = await asJson<Named>(service, 'destinations', 'update', 'all settings', '--no-filter', '--shared-secret', 'none')
    assert.partialDeepStrictEqual(cleared, {
      hasSharedSecret: false,
      filter: { types: { allow: [], deny: [] }, events: { allow: [], deny: [] } },
    })
    for (const list of [['audit', '--subject', shown.id, '--json'], ['audit']])
      assert.doesNotMatch(await says(service, ...list), /secret-of|whsec_/)
  })

  test('a destination is paused, resumed, disabled, enabled and tested, and its health is shown', async () => {
    await newSource(service, 'health')
    await using receiver = await startReceiver(() => ({ status: 500, body: 'out of order' }))
    await says(service, 'destinations', 'create', 'health', receiver.url, '--source', 'health', '--paused')
    const pasted = await switchyard(service, 'destinations', 'create', 'health', receiver.url, '--source', 'health', '--paused')
    assert.equal(pasted.code, 1)
    assert.match(
      pasted.stderr,
      /^The destination dst_\w+ already has the name "health" and the same URL, .* would be sent twice\. Nothing was changed\. .*--allow-duplicate\.\n$/,
    )
    for (const more of [[`${receiver.url}/other`], [receiver.url, '--allow-duplicate']]) {
      const twin = await switchyard(service, 'destinations', 'create', 'health', ...more, '--source', 'health', '--disabled', '--json')
      assert.equal(twin.code, 0, twin.stderr)
      assert.match(twin.stderr, /^Another destination has the same name \(dst_\w+\)\. Use the id in commands/)
      await says(service, 'destinations', 'delete', (JSON.parse(twin.stdout) as Named).id, '--yes')
    }
    assert.equal((await asJson<{ paused: boolean }>(service, 'destinations', 'show', 'health')).paused, true)
    assert.match(await says(service, 'destinations', 'resume', 'health'), /^Destination health is resumed\.\n$/)
    assert.match(await says(service, 'destinations', 'pause', 'health'), /^Destination health is paused\.\n$/)
    assert.match(await says(service, 'destinations', 'show', 'health'), /enabled +(true|yes)\n *paused +(true|yes)\n/)
    assert.match(await says(service, 'destinations', 'disable', 'health'), /is disabled\.\n/)
    assert.match(
      await says(service, 'destinations', 'resume', 'health'),
      /is resumed\. It is still disabled: run `\S+\/switchyard destinations enable dst_\w+` to send/,
    )
    assert.match(await says(service, 'destinations', 'enable', 'health'), /is enabled\.\n/)
    assert.equal((await asJson<{ paused: boolean }>(service, 'destinations', 'show', 'health')).paused, false)
    const bad = await switchyard(service, 'destinations', 'test', 'health')
    assert.equal(bad.code, 1)
    assert.match(bad.stdout, /http_500 after[^]*response: out of order[^]*Test failed: no URL answered 2xx\./)
    receiver.answer = () => undefined
    assert.match(await says(service, 'destinations', 'test', 'health', '--type', 'identify'), /Test passed\./)
    assert.match(await says(service, 'destinations', 'health', 'health'), /^circuit breaker +closed\n/)
    const unasked = await switchyard(service, 'destinations', 'delete', 'health')
    assert.equal(unasked.code, 2)
    assert.match(
      unasked.stderr,
      /^Nothing was changed, because there is no terminal .*: Delete the destination health \(dst_\w+\)\?.* To confirm, add --yes\./,
    )
    await says(service, 'destinations', 'delete', 'health', '--yes')
    const gone = await switchyard(service, 'destinations', 'show', 'health')
    assert.deepEqual(
      [gone.code, gone.stderr],
      [4, `There is no destination with the id or name health. Run \`${commandForm({ cwd: process.cwd() })} destinations\` for a list.\n`],
    )
  })

  test('a viewer can read but not change anything, and a revoked token is rejected', async () => {
    const { id, token } = await asJson<Named & { token: string }>(service, 'tokens', 'create', 'grafana')
    assert.match(await says(service, 'tokens'), new RegExp(`${id} +grafana +viewer +all +never +never`))
    const viewer = { url: service.url, token }
    assert.match(await says(viewer, 'ledger', '--json'), /consistent/)
    assert.match(await says(viewer, 'sources'), /…/)
    const sent = await switchyard(viewer, 'send', 'track', '--user-id', 'u', '--event', 'e')
    assert.deepEqual([sent.code, /the role viewer, which does not see write keys/.test(sent.stderr)], [2, true], sent.stderr)
    const exported = await switchyard(viewer, 'export')
    assert.deepEqual([exported.code, /writeKeys/.test(exported.stdout)], [0, false], exported.stderr)
    assert.match(exported.stderr, /no write keys, because the control token has the role viewer/)
    const refused = await switchyard(viewer, 'sources', 'create', 'no')
    assert.deepEqual([refused.code, refused.stdout], [3, ''])
    assert.match(refused.stderr, /^[A-Z].*\(\w+\)\n$/)
    assert.doesNotMatch(await says(service, 'tokens'), /grafana +viewer +never/, 'it was used')
    assert.match(await says(service, 'tokens', 'revoke', 'grafana', '--yes'), /^Revoked token/)
    const unknown = await switchyard(viewer, 'sources')
    assert.deepEqual([unknown.code, /rejected this control token/.test(unknown.stderr)], [3, true])
    assert.doesNotMatch(unknown.stderr, new RegExp(token))
  })

  test('alerts are tested, their rules are changed, and they are muted', async () => {
    const nobody = await switchyard(service, 'alerts', 'test')
    const advice = /No destination receives alerts\. Create one: \S+\/switchyard (.*) URL (.*)\n/.exec(nobody.stdout)
    assert.deepEqual([nobody.code, advice === null], [1, false])
    const url = 'https://alerts.example.com/hook'
    await says(service, ...(advice?.[1] ?? '').split(' '), url, ...(advice?.[2] ?? '').split(' '))
    assert.match(await says(service, 'alerts', 'test'), /^Sent to 1 destination\./)
    await says(service, 'destinations', 'delete', 'alerts', '--yes')
    assert.match(await says(service, 'alerts', 'rules'), /destination_failing +Destination Failing +yes +openAfterMinutes=5/)
    await says(service, 'alerts', 'rules', 'source_silent', '--set', 'openAfterMinutes=30')
    assert.match(await says(service, 'alerts', 'rules', 'source_silent'), /openAfterMinutes +30\n/)
    assert.match(await says(service, 'alerts', 'rules', 'source_silent', '--reset'), /openAfterMinutes +3\n/)
    const { id } = await asJson<Named>(service, 'alerts', 'mute', '--for', '2h', '--rule', 'source_silent', '--source', 'default')
    assert.match(await says(service, 'alerts', 'mutes'), new RegExp(`${id} +source_silent +default `))
    assert.match(await says(service, 'alerts', 'unmute', id), /^Ended mute/)
    assert.equal((await switchyard(service, 'alerts', 'mute')).code, 2)
    assert.equal((await switchyard(service, 'alerts', 'show', 'inc_x')).code, 4)
    assert.deepEqual(await asJson(service, 'alerts'), [])
  })

  test('an OAuth application accepts a public key and rejects a private one', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const [open, secret] = [join(folder, 'public.pem'), join(folder, 'private.pem')]
    writeFileSync(open, publicKey.export({ type: 'spki', format: 'pem' }))
    writeFileSync(secret, privateKey.export({ type: 'pkcs8', format: 'pem' }))
    await newSource(service, 'oauth')
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
    await says(service, 'oauth-apps', 'remove-key', 'shop app', second, '--yes')
    assert.match(await says(service, 'oauth-apps', 'revoke-tokens', 'shop app'), /^Revoked the access tokens of shop app/)
    await says(service, 'oauth-apps', 'delete', app.id, '--yes')
    assert.equal((await switchyard(service, 'oauth-apps', 'show', app.id)).code, 4)
  })
})

suite('Replays, deletions, suppressions', { concurrency: 2 }, () => {
  test('a replay job is previewed, paused, resumed, cancelled and followed', async () => {
    const { id, key } = await newSource(service, 'replaying')
    await using receiver = await startReceiver(() => ({ status: 400 }))
    const hook = await asJson<Named>(service, 'destinations', 'create', 'replayed', receiver.url, '--source', id)
    const batch = Array.from({ length: 20 }, (_, index) => track(`replay-${index}`))
    await service.post('/v1/batch', JSON.stringify({ batch, writeKey: key }), { authorization: '' })
    await eventually(
      () => asJson<Named[]>(service, 'deliveries', '--destination', hook.id, '--state', 'failed'),
      (rows) => rows.length === 20,
    )
    assert.match(await says(service, 'replay', '--destination', 'replayed', '--dry-run'), /^20 deliveries match\./)
    assert.match(await says(service, 'replay', '--destination', 'replayed', '--to', '1h', '--dry-run'), /^0 deliveries match\./)

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
    // Delivery ids from stdin.
    const failed = await asJson<Named[]>(service, 'deliveries', '--destination', hook.id, '--state', 'failed', '--limit', '2')
    const input = failed.map(({ id }) => id).join('\n')
    const piped = await startSwitchyard(service, ['replay', '-', '--dry-run', '--json'], { input }).ended
    assert.partialDeepStrictEqual(JSON.parse(piped.stdout), { dryRun: true, total: 2, alreadyReplayed: 2 })
    const ids = failed.map(({ id }) => id)
    const before = await says(service, 'replay', ...ids, '--dry-run')
    assert.equal(
      before,
      '2 deliveries match. 2 of them were replayed before and would be skipped, because they are pending again or have been delivered since. To send them again, use --include-replayed.\n',
    )
    assert.equal((await asJson<Job>(service, 'replay', ...ids)).replayed, 0)
    const again = await asJson<Job>(service, 'replay', ...ids, '--include-replayed')
    assert.deepEqual([again.replayed, again.outcomes['delivered']], [2, 2])
    receiver.answer = () => ({ status: 503 })
    const early = await switchyard(service, 'replay', ...ids, '--include-replayed', '--timeout', '100ms')
    assert.match(early.stderr, /2 deliveries are still pending\. Run `\S+switchyard replay show rpl_\w+ --wait` to follow them\.\n/)
    assert.match(await says(service, 'replay', 'list'), /QUEUED OR SKIPPED[^]* 2 of 2 +2 pending/)
    const none = await switchyard(service, 'replay')
    assert.deepEqual([none.code, /Nothing is selected\. Give DELIVERY_IDs/.test(none.stderr)], [2, true])
    const both = await switchyard(service, 'replay', '1-0', '--destination', 'replayed')
    assert.deepEqual([both.code, both.stderr], [2, 'DELIVERY_IDs cannot be combined with --destination. Use one or the other.\n'])
    const missing = await switchyard(service, 'replay', '999999-0')
    assert.deepEqual([missing.code, /delivery_not_found/.test(missing.stderr)], [4, true])
  })

  test('Ctrl-C while following a replay leaves the job running and says how to follow it again', async () => {
    const { id, key } = await newSource(service, 'interrupting')
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

  test('users are deleted, suppressed, and accepted again', async () => {
    const { id, key } = await newSource(service, 'forgetting')
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
    assert.match(await says(service, 'deletions', 'show', listed?.id ?? ''), /purged messages[^]*notifications +2 finished/)

    assert.match(await says(service, 'suppressions'), /forget-1/)
    await says(service, 'suppressions', 'add', 'quiet', '--source', 'forgetting')
    await says(service, 'send', '--write-key', key, '--user-id', 'quiet', '--message-id', 'quiet-1')
    assert.equal((await switchyard(service, 'trace', 'quiet-1')).code, 4)
    assert.match(await says(service, 'suppressions', 'remove', 'quiet'), /are accepted again/)
    await says(service, 'send', '--write-key', key, '--user-id', 'quiet', '--message-id', 'quiet-2')
    await says(service, 'trace', 'quiet-2')
    assert.equal((await switchyard(service, 'suppressions', 'remove', 'quiet')).code, 4)
  })
})
