// The commands for operators, run as processes against a real service: listen, doctor, backup, export and apply, rotate-key.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { SQLITE_ONLY } from '../../packages/server/src/store/fixtures/test-store.ts'
import { folderFor, type Result, runProcess, switchyardWith } from '../system/command-line.ts'
import { startReceiver } from '../system/receiver.ts'
import { type Service, startService, track } from '../system/service.ts'

function run(service: Pick<Service, 'url' | 'token'>, args: string[], env: Record<string, string> = {}): Promise<Result> {
  return switchyardWith(env, service, ...args)
}

function json({ stdout }: Result): unknown {
  return JSON.parse(stdout)
}

suite('listen', { concurrency: 2 }, () => {
  test('--connect creates a destination, each message is printed on one line with a valid signature, and Ctrl-C deletes the destination', async () => {
    await using service = await startService()
    const listening = runProcess(service, ['listen', '--port', '0', '--connect', '--json'])
    await listening.signals.until(() => /Created destination/.test(listening.stderr()))
    await service.send([track('m-1'), track('m-2', { userId: 'u-2' })])
    await service.settled(2)
    listening.kill('SIGINT')
    const { code, stdout, stderr } = await listening.ended
    assert.equal(code, 0, stderr)
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { signature: object; attempt: number; messages: { messageId: string }[]; summary: object })
    assert.deepEqual(
      lines
        .slice(0, 2)
        .flatMap(({ messages }) => messages.map(({ messageId }) => messageId))
        .sort(),
      ['m-1', 'm-2'],
    )
    for (const { signature, attempt } of lines.slice(0, 2))
      assert.deepEqual([signature, attempt], [{ verdict: 'good', coverage: 'body' }, 1])
    assert.deepEqual(lines[2]?.summary, { requests: 2, messages: 2, duplicates: 0, bad: 0, good: 2, missing: 0, wrong: 0 })
    assert.deepEqual((await service.api<{ data: unknown[] }>('/destinations')).data, [])
  })

  test('it fails as asked, and reports whether each signature is valid', async () => {
    await using service = await startService()
    const env = { SWITCHYARD_SHARED_SECRET: 'wrong secret', SWITCHYARD_TOKEN: '' }
    const listening = runProcess(service, ['listen', '--port', '0', '--status', '503'], env)
    await listening.signals.until(() => /Listening on/.test(listening.stderr()))
    const [url = ''] = /http:\S+/.exec(listening.stderr()) ?? []
    await service.destination({ urls: [url], sharedSecret: 'the secret' })
    await service.send([track('m-1')])
    await listening.signals.until(() => /m-1/.test(listening.stdout()))
    listening.kill('SIGINT')
    const { code, stdout } = await listening.ended
    assert.equal(code, 0)
    assert.match(stdout, /track +"Tested" +user user of m-1 +m-1 +attempt 1 +✘ signature invalid \(signature_invalid\) +→ 503/)
  })

  test('a port that is in use is reported in one sentence', async () => {
    await using receiver = await startReceiver()
    const { code, stderr } = await run({ url: 'http://127.0.0.1:1', token: '' }, ['listen', '--port', String(receiver.port)])
    assert.equal(code, 1)
    assert.match(stderr, /^Cannot listen on 127\.0\.0\.1, port \d+: the address is already in use\. .*--port.*\n$/)
  })
})

suite('doctor', { concurrency: 2 }, () => {
  interface Diagnosis {
    ok: boolean
    checks: { name: string; state: string; message: string; advice: string | null }[]
  }
  const diagnosis = (ended: Result): Diagnosis => json(ended) as Diagnosis
  const not = (state: string, { checks }: Diagnosis): string[] => checks.filter((check) => check.state !== state).map(({ name }) => name)

  test('a healthy installation has no problems; an unreachable destination is found', async () => {
    await using receiver = await startReceiver()
    await using service = await startService()
    await service.destination({ name: 'reached', urls: [receiver.url] })
    const good = await run(service, ['doctor', '--json'])
    assert.equal(good.code, 0, good.stdout)
    assert.deepEqual(not('good', diagnosis(good)), [])
    await service.destination({ name: 'gone', urls: ['http://127.0.0.1:1/'] })
    const { code, stdout } = await run(service, ['doctor'])
    assert.equal(code, 1)
    assert.match(stdout, /^✘ http:\/\/127\.0\.0\.1:1 cannot be reached: .*connection_refused.*\n {4}→ No program listens on this port/m)
    assert.match(stdout, /1 problem found(, \d+ warnings?)?\.\n$/)
    assert.equal(receiver.arrivals.length, 0, 'no request was sent')
  })

  test('without a service it checks the file: healthy, altered, damaged, and without its key', { skip: SQLITE_ONLY }, async () => {
    await using service = await startService()
    const id = await service.destination({ urls: ['http://127.0.0.1:1/'], sharedSecret: 'secret' })
    await service.send([track('m-1')])
    const env = { SWITCHYARD_STORE: `sqlite:${service.file}` }
    await service.stop()
    const doctor = (): Promise<Result> => run(service, ['doctor', '--json'], env)
    const down = await doctor()
    assert.equal(down.code, 1)
    assert.deepEqual(not('good', diagnosis(down)), ['service'], down.stdout)
    assert.deepEqual(
      diagnosis(down).checks.map(({ name }) => name),
      ['configuration', 'service', 'store_integrity', 'ledger', 'secret_key'],
    )

    copyFileSync(`${service.file}.key`, `${service.file}.kept`)
    writeFileSync(`${service.file}.key`, 'another key', { mode: 0o600 })
    assert.deepEqual(not('good', diagnosis(await doctor())), ['service', 'secret_key'])
    rmSync(`${service.file}.key`)
    assert.deepEqual(not('good', diagnosis(await doctor())), ['service', 'secret_key'])
    copyFileSync(`${service.file}.kept`, `${service.file}.key`)

    const { DatabaseSync } = await import('node:sqlite')
    const database = new DatabaseSync(service.file)
    database.exec('UPDATE ledger SET owed = owed + 1')
    database.close()
    const altered = diagnosis(await doctor())
    assert.ok(not('good', altered).includes('ledger'))
    assert.match(
      altered.checks.find(({ name }) => name === 'ledger')?.message ?? '',
      new RegExp(`${id}: owed is 2 in the ledger and 1 in the recount`),
    )
    writeFileSync(service.file, 'not a database at all'.repeat(1_000))
    assert.ok(not('good', diagnosis(await doctor())).includes('store_integrity'))
  })

  test('an invalid token is reported, and no file is touched', async () => {
    await using service = await startService()
    const { code, stdout } = await run({ ...service, token: 'wrong' }, ['doctor'])
    assert.equal(code, 1)
    assert.match(stdout, /✘ The service at \S+ rejected this control token/)
    assert.doesNotMatch(stdout, /whole/)
  })
})

suite('backup and restore', { concurrency: 2 }, () => {
  test('a backup made under load and restored elsewhere after a kill contains everything acknowledged before, and its ledger balances', {
    skip: SQLITE_ONLY,
  }, async (t) => {
    const folder = folderFor(t)
    const copy = join(folder, 'copy.db')
    await using receiver = await startReceiver(() => ({ status: 503 }))
    await using service = await startService()
    const id = await service.destination({ urls: [receiver.url], sharedSecret: 'kept secret' })
    await service.send(Array.from({ length: 500 }, (_, index) => track(`before-${index}`)))
    let over = false
    let during = 0
    const sending = (async () => {
      // oxlint-disable-next-line eslint/no-unmodified-loop-condition -- it is changed below while this waits
      while (!over) {
        await service.send([track(`during-${during}`)])
        during += 1
      }
    })()
    const env = { SWITCHYARD_STORE: `sqlite:${service.file}` }
    const made = await run(service, ['backup', copy, '--with-key', '--json'], env)
    over = true
    await sending
    assert.equal(made.code, 0, made.stderr)
    assert.ok(during > 0)
    assert.deepEqual([statSync(copy).mode & 0o777, statSync(`${copy}.key`).mode & 0o777], [0o600, 0o600])
    const refused = await run(service, ['backup', copy])
    assert.equal(refused.code, 2)
    assert.equal((await run(service, ['backup', '--check', copy])).code, 0)
    service.kill('SIGKILL')
    await service.ended

    const place = join(folder, 'restored')
    await using restored = await startRestored(place, copy)
    const [row] = await restored.ledger({ recount: true })
    assert.deepEqual(await restored.ledger(), await restored.ledger({ recount: true }))
    assert.equal(row?.destinationId, id)
    assert.ok((row?.owed ?? 0) >= 500 && (row?.owed ?? 0) <= 500 + during)
    for (const index of [0, 250, 499]) {
      const { messageId } = await restored.api<{ messageId: string }>(`/messages/before-${index}`)
      assert.equal(messageId, `before-${index}`)
    }
    receiver.answer = () => undefined
    const settled = await restored.settled(undefined, { deadlineMs: 60_000 })
    assert.equal(settled[0]?.delivered, settled[0]?.owed)
    const last = receiver.arrivals.at(-1)
    assert.ok(last?.headers['x-signature'], 'secrets can be decrypted with the copied key')
  })

  test('--check finds a damaged copy and one with another key', { skip: SQLITE_ONLY }, async (t) => {
    const folder = folderFor(t)
    const copy = join(folder, 'copy.db')
    await using service = await startService()
    await service.destination({ urls: ['http://127.0.0.1:1/'], sharedSecret: 'secret' })
    assert.equal((await run(service, ['backup', copy])).code, 0)
    assert.equal(existsSync(`${copy}.key`), false, 'the key is copied only with --with-key')
    assert.equal(readFileSync(copy).includes(readFileSync(`${service.file}.key`, 'utf8').trim()), false)
    writeFileSync(`${copy}.key`, 'another key')
    const wrongKey = await run(service, ['backup', '--check', copy, '--json'])
    assert.deepEqual([wrongKey.code, (json(wrongKey) as { keyFits: boolean }).keyFits], [1, false])
    rmSync(`${copy}.key`)
    const bytes = readFileSync(copy)
    bytes.fill(0xff, 8_192, 20_480)
    writeFileSync(copy, bytes)
    assert.equal((await run(service, ['backup', '--check', copy])).code, 1)
    assert.equal((await run(service, ['backup', '--check', join(folder, 'nowhere')])).code, 4)
  })
})

/** Restores a backup: replaces the store with the copy, puts the key next to it, and starts the service. */
async function startRestored(place: string, copy: string): Promise<Service> {
  const { mkdirSync } = await import('node:fs')
  mkdirSync(place)
  copyFileSync(copy, join(place, 'switchyard.db'))
  copyFileSync(`${copy}.key`, join(place, 'switchyard.db.key'))
  return startService({ folder: place })
}

suite('export and apply', { concurrency: 2 }, () => {
  const SIGNING = `whsec_${Buffer.alloc(24, 9).toString('base64')}`

  test('applying the export of one installation makes another one equal, with secrets from the environment and none in the file', async (t) => {
    const file = join(folderFor(t), 'switchyard.yaml')
    await using receiver = await startReceiver()
    await using one = await startService()
    await using two = await startService()
    await one.destination({
      name: 'Warehouse',
      urls: [`${receiver.url}hook?token=hidden-in-url`],
      headers: { Authorization: 'Bearer hidden-in-header', 'X-Team': 'hidden team' },
      sharedSecret: 'hidden-shared',
      signingSecrets: [SIGNING],
      batch: { size: 5 },
      filter: { types: { allow: ['track'], deny: [] }, events: { allow: [], deny: ['Noise'] } },
    })
    const { publicKey } = generateKeyPairSync('ed25519', { publicKeyEncoding: { type: 'spki', format: 'pem' } })
    await one.api('/oauth-apps', {
      method: 'POST',
      body: { name: 'Backend', sourceIds: [one.sourceId], keys: [{ id: 'k-1', publicKeyPem: publicKey }] },
    })
    assert.equal((await run(one, ['export', file])).code, 0)
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const text = readFileSync(file, 'utf8')
    for (const secret of ['hidden', SIGNING.slice(6)]) assert.equal(text.includes(secret), false, text)
    assert.equal((await run(one, ['apply', file, '--dry-run'])).code, 0, 'applying the export to its own installation changes nothing')
    for (const name of ['a\u2028b', 'a\u202eb', 'a\u0020\u2029b']) await one.api('/sources', { method: 'POST', body: { name } })
    const piped = `${file}.piped`
    writeFileSync(piped, (await run(one, ['export'])).stdout)
    const again = await run(one, ['apply', piped, '--dry-run'])
    assert.equal(again.code, 0, `names are not escaped in a pipe: ${again.stdout}`)

    const missing = await run(two, ['apply', file])
    assert.equal(missing.code, 2)
    assert.match(missing.stderr, /Nothing was changed:\n.*WAREHOUSE_URL_TOKEN is not set/s)
    assert.deepEqual((await two.api<{ data: unknown[] }>('/destinations')).data, [])
    const env = {
      WAREHOUSE_URL_TOKEN: 'hidden-in-url',
      WAREHOUSE_AUTHORIZATION: 'Bearer hidden-in-header',
      WAREHOUSE_X_TEAM: 'hidden team',
      WAREHOUSE_SHARED_SECRET: 'hidden-shared',
      WAREHOUSE_SIGNING_SECRET: SIGNING,
    }
    const shown = await run(two, ['apply', file, '--dry-run'], env)
    assert.equal(shown.code, 5)
    assert.match(shown.stdout, /^\+ destination Warehouse$/m)
    assert.match(shown.stdout, /^\+ OAuth application Backend$/m)
    const applied = await run(two, ['apply', file], env)
    assert.equal(applied.code, 0, applied.stderr)
    for (const said of [shown, applied, missing]) assert.equal(`${said.stdout}${said.stderr}`.includes('hidden'), false)
    assert.equal((await run(two, ['apply', file, '--dry-run'], env)).code, 0, 'applying it again changes nothing')
    assert.equal((await run(two, ['apply', file, '--dry-run'])).code, 0, 'also without the secrets, which stay unchanged')
    assert.equal((await run(two, ['apply', file, '--dry-run'], { ...env, WAREHOUSE_SHARED_SECRET: 'another' })).code, 5)
    const exported = await run(two, ['export'])
    assert.equal(exported.stdout, text, 'the two installations export the same')

    const [, writeKey = ''] = /writeKeys:\s+- (\S+)/.exec(text) ?? []
    const sent = await fetch(`${two.url}/v1/track`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${writeKey}:`)}` },
      body: JSON.stringify({ userId: 'u', event: 'e' }),
    })
    assert.equal(sent.status, 200)
    await receiver.until(() => receiver.arrivals.length === 1)
    const [{ headers, path } = assert.fail()] = receiver.arrivals
    assert.deepEqual([path, headers['authorization']], ['/hook?token=hidden-in-url', 'Bearer hidden-in-header'])
    assert.ok(headers['x-signature'] && headers['webhook-signature'])
  })

  test('an invalid file changes nothing, and entries are deleted only with --prune', async (t) => {
    const file = join(folderFor(t), 'switchyard.yaml')
    await using service = await startService()
    await service.destination({ name: 'old', urls: ['http://127.0.0.1:1/'] })
    const write = (text: string): void => writeFileSync(file, text)
    const names = async (): Promise<string[]> =>
      (await service.api<{ data: { name: string }[] }>('/destinations')).data.map(({ name }) => name)
    write(
      'version: 1\nsources:\n  - name: default\n  - name: new\ndestinations:\n  - name: new\n    sources: [new]\n    urls: [ftp://x]\n  - name: other\n    urls: []\n',
    )
    const wrong = await run(service, ['apply', file])
    assert.equal(wrong.code, 2)
    assert.match(wrong.stderr, /destination new: urls\[0\].*\n.*destination other: urls/)
    assert.equal((await service.api<{ data: unknown[] }>('/sources')).data.length, 2, 'default and system')
    write(
      'version: 1\nsources:\n  - name: default\n  - name: new\ndestinations:\n  - name: new\n    sources: [new]\n    urls: [http://127.0.0.1:1/]\n',
    )
    assert.equal((await run(service, ['apply', file])).code, 0)
    assert.deepEqual(await names(), ['old', 'new'])
    assert.equal((await run(service, ['apply', file, '--prune'])).code, 0)
    assert.deepEqual(await names(), ['new'])
    write(
      'version: 1\na: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c, *c, *c]\n',
    )
    assert.equal((await run(service, ['apply', file])).code, 2, 'YAML aliases cannot expand a small file to a large one')
    write('version: 1\nsources: [')
    assert.match((await run(service, ['apply', file])).stderr, /is not valid YAML/)
  })
})

suite('rotate-key', () => {
  test('rejected while the service runs; afterwards secrets still sign requests, encrypted with a new key', {
    skip: SQLITE_ONLY,
  }, async () => {
    await using receiver = await startReceiver()
    await using service = await startService()
    await service.destination({ urls: [receiver.url], sharedSecret: 'the secret' })
    const env = { SWITCHYARD_STORE: `sqlite:${service.file}` }
    const refused = await run(service, ['rotate-key'], env)
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /in use by another Switchyard process/)
    await service.stop()
    const before = readFileSync(`${service.file}.key`, 'utf8').trim()
    const rotated = await run(service, ['rotate-key'], env)
    assert.equal(rotated.code, 0, rotated.stderr)
    const after = readFileSync(`${service.file}.key`, 'utf8').trim()
    assert.notEqual(after, before)
    assert.equal(`${rotated.stdout}${rotated.stderr}`.includes(after), false, 'the key is not printed')
    assert.equal(statSync(`${service.file}.key`).mode & 0o777, 0o600)
    const next = await service.restart()
    await next.send([track('m-1')])
    await receiver.until(() => receiver.arrivals.length === 1)
    assert.ok(receiver.arrivals[0]?.headers['x-signature'])
    await next.stop()
  })

  test('a key from the environment is replaced only by one that the operator provides', async () => {
    await using service = await startService({ env: { SWITCHYARD_SECRET_KEY: 'the old key of this test' } })
    await service.destination({ urls: ['http://127.0.0.1:1/'], sharedSecret: 'the secret' })
    await service.stop()
    const env = { ...service.storeEnv, SWITCHYARD_SECRET_KEY: 'the old key of this test' }
    const asked = await run(service, ['rotate-key'], env)
    assert.equal(asked.code, 2)
    assert.match(asked.stderr, /rotate-key --generate/)
    const short = await run(service, ['rotate-key'], { ...env, SWITCHYARD_NEW_SECRET_KEY: 'short' })
    assert.equal(short.code, 2)
    assert.match(short.stderr, /^SWITCHYARD_NEW_SECRET_KEY has 5 characters, and needs at least 16\./)
    const generated = (await run(service, ['rotate-key', '--generate'])).stdout.trim()
    assert.ok(generated.length >= 40)
    const rotated = await run(service, ['rotate-key'], { ...env, SWITCHYARD_NEW_SECRET_KEY: generated })
    assert.equal(rotated.code, 0, rotated.stderr)
    assert.equal(`${rotated.stdout}${rotated.stderr}`.includes(generated), false)
    const next = await service.restart({ env: { SWITCHYARD_SECRET_KEY: generated } })
    assert.equal((await next.api<{ data: { hasSharedSecret: boolean }[] }>('/destinations')).data[0]?.hasSharedSecret, true)
    await next.stop()
  })
})
