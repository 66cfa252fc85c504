// The settings of destinations for any HTTP API on the command line and in a configuration file: expressions, requests, code, retries,
// credentials. Against real services and receivers.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { createCertificate } from '../../packages/server/src/delivery/fixtures/certificates.ts'
import { folderFor, type Named, says, startSwitchyard, switchyard, switchyardWith } from '../system/command-line.ts'
import { startReceiver } from '../system/receiver.ts'
import { startService, track } from '../system/service.ts'

const REQUEST = `
method: PUT
path: /users/{{userId}}
headers:
  X-Tenant: '{{context.tenant}}'
body:
  id: { '@path': $.userId }
  text: { '@template': '{{event}} for {{properties.total}}' }
`

const CODE = `// Masks the name, except for \${test} users.
export default function (message) {
  if (message.event === 'Noise') return null
  message.properties.note = \`\${message.event}: "quoted"\`
  return message
}
`

suite('Destinations for any HTTP API', { concurrency: 2 }, () => {
  test('a request from a file, an expression, a retry policy and credentials; secrets are read from elsewhere', async (t) => {
    const folder = folderFor(t)
    const path = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    await using service = await startService()
    await using receiver = await startReceiver()
    const request = path('request.yaml', REQUEST)
    const args = ['destinations', 'create', 'api', receiver.url, '--request-file', request, '--subscribe', 'properties.total > 100']
    args.push('--auth', 'basic', '--auth-username', 'env:API_USER', '--auth-secret', 'env:API_PASSWORD')
    args.push('--alias', 'CRM (Actions)', '--alias', 'Old CRM')
    args.push('--retry-initial', '1s', '--retry-factor', '1.5', '--retry-status', '409', '--retry-status', '423', '--fail-status', '503')
    const made = await switchyardWith({ API_USER: 'me', API_PASSWORD: 'hidden' }, service, '--json', ...args)
    assert.equal(made.code, 0, made.stderr)
    const { retry, auth, subscribe, request: sent, aliases } = JSON.parse(made.stdout) as Named
    assert.deepEqual(aliases, ['CRM (Actions)', 'Old CRM'])
    assert.match(await says(service, 'destinations', 'show', 'api'), /^aliases +CRM \(Actions\), Old CRM$/m)
    assert.partialDeepStrictEqual(retry, { initialMs: 1_000, factor: 1.5, retryStatuses: [409, 423], failStatuses: [503] })
    assert.deepEqual([subscribe, auth], ['properties.total > 100', { type: 'basic', username: 'me', hasPassword: true }])
    assert.partialDeepStrictEqual(sent, { method: 'PUT', path: '/users/{{userId}}', format: 'json' })
    assert.doesNotMatch(made.stdout, /hidden/)

    const order = { event: 'Paid', userId: 'u 1', context: { tenant: 't-1' } }
    await service.send([
      { ...track('large'), ...order, properties: { total: 120 } },
      { ...track('small'), ...order, properties: { total: 5 } },
    ])
    await service.settled()
    const [{ method, path: at, headers, bytes } = assert.fail(), ...others] = receiver.arrivals
    assert.deepEqual([method, at, headers['x-tenant'], others.length], ['PUT', '/users/u%201', 't-1', 0])
    assert.equal(headers['authorization'], `Basic ${btoa('me:hidden')}`)
    assert.deepEqual(JSON.parse(bytes.toString()), { id: 'u 1', text: 'Paid for 120' })

    // A password that is not given again is kept for the same user.
    const update = ['destinations', 'update', 'api']
    assert.match(
      await says(
        service,
        ...update,
        '--auth',
        'basic',
        '--subscribe',
        'none',
        '--retry-status',
        'none',
        '--retry-window',
        '7d',
        '--alias',
        'none',
      ),
      /retry window +168 h\nretry waits +1 s, then each 1\.5 times as long as the one before, up to 10 min\nnot retried +503\n[^]*request +PUT \/users\/\{\{userId\}\} as json\n[^]*authentication +basic\n/,
    )
    const other = await switchyard(service, ...update, '--auth-username', 'another')
    assert.deepEqual([other.code, /auth\.password is required/.test(other.stderr)], [2, true], other.stderr)
    const plain = await switchyard(service, ...update, '--auth', 'bearer', '--auth-secret', 'hidden')
    assert.deepEqual([plain.code, /--auth-secret must say where to read/.test(plain.stderr)], [2, true])
    const unused = await switchyard(service, ...update, '--auth', 'bearer', '--auth-scope', 'all')
    assert.deepEqual([unused.code, unused.stderr.trim()], [2, '--auth-scope cannot be used with --auth bearer.'])
    assert.match((await switchyard(service, ...update, '--subscribe', 'type =')).stderr, /At column 7: expected a value/)
    assert.match(
      (await switchyard(service, ...update, '--request-file', path('broken', '{ a: ['))).stderr,
      /--request-file: .* is not valid JSON or YAML: /,
    )
    await says(service, 'destinations', 'create', 'letters', receiver.url, '--dead-letter', 'none')
    assert.match(await says(service, ...update, '--dead-letter', 'letters'), /dead letters to +dst_/)
    assert.equal((await switchyard(service, 'destinations', 'update', 'letters', '--dead-letter', 'api')).code, 2, 'a cycle is refused')
    const piped = startSwitchyard(service, [...update, '--json', '--auth', 'none', '--request-file', '-'], { input: '{"method":"PATCH"}' })
    const { code, stdout, stderr } = await piped.ended
    assert.equal(code, 0, stderr)
    assert.partialDeepStrictEqual(JSON.parse(stdout), { auth: null, request: { method: 'PATCH', path: '' } })
    const twice = await switchyard(service, ...update, '--auth', 'bearer', '--auth-secret', '-', '--shared-secret', '-')
    assert.deepEqual([twice.code, twice.stderr.trim()], [2, 'Only one flag can read stdin (-).'])
  })

  test('code from a file is previewed before it is saved, and an earlier version is restored', async (t) => {
    const code = join(folderFor(t), 'code.js')
    writeFileSync(code, CODE)
    await using service = await startService()
    await using receiver = await startReceiver()
    await says(service, 'destinations', 'create', 'api', receiver.url)
    await service.send([
      { ...track('m-1'), event: 'Paid', properties: {} },
      { ...track('m-2'), event: 'Noise', properties: {} },
    ])
    await service.settled()
    const preview = ['destinations', 'preview', 'api', '--transformation-file', code]
    const shown = await says(service, ...preview)
    assert.match(shown, /^m-2 {2}track Noise\nDropped by the transformation\.\n\nm-1 {2}track Paid\nPOST http/m)
    assert.match(shown, /"note":"Paid: \\"quoted\\""/)
    assert.match(shown, /\n2 messages: 1 sent, 1 dropped\.\nWith the saved settings: 2 messages: 2 sent\.\n$/)
    const { data } = JSON.parse(await says(service, ...preview, '--json', '--message-id', 'm-1')) as { data: Named[] }
    assert.deepEqual(
      data.map(({ messageId }) => messageId),
      ['m-1'],
    )
    const given = ['--message', '{"type":"track","userId":"u","event":"Paid"}', '--subscribe', 'properties.total > 1']
    assert.match(
      await says(service, 'destinations', 'preview', 'api', ...given),
      /Not sent: .* subscribe expression: properties\.total > 1\n/,
    )
    assert.doesNotMatch(await says(service, 'destinations', 'show', 'api'), /transformation|subscribe/, 'nothing was saved')

    const update = ['destinations', 'update', 'api']
    const none = await switchyard(service, ...update, '--transformation-timeout', '100ms')
    assert.deepEqual([none.code, none.stderr.trim()], [2, 'The destination has no transformation yet: give --transformation-file as well.'])
    assert.match(await says(service, ...update, '--transformation-file', code), /transformation +6 lines of JavaScript\nversion +2\n/)
    assert.match(await says(service, ...update, '--json', '--transformation-timeout', '100ms'), /"timeoutMs": ?100/)
    writeFileSync(code, 'export default function (message) { throw new Error("no") }')
    const failed = await switchyard(service, ...preview)
    assert.deepEqual([failed.code, /Failed: line 1: .*no.*\n/.test(failed.stdout)], [1, true], failed.stdout)
    await says(service, ...update, '--transformation-file', code)
    assert.match(
      await says(service, 'destinations', 'versions', 'api'),
      /^4 \(current\) +.*transformation\.code *\n3 +.*transformation\.timeoutMs *\n2 +/m,
    )
    assert.match(await says(service, 'destinations', 'restore', 'api', '2'), /version 2 was restored as version 5\.\n/)
    assert.match(await says(service, 'destinations', 'versions', 'api', '--limit', '1'), /^5 \(current\) +.*restored from 2/m)
    const unknown = await switchyard(service, 'destinations', 'restore', 'api', '99')
    assert.deepEqual([unknown.code, /version is not the number of a version/.test(unknown.stderr)], [2, true], unknown.stderr)
    assert.match(await says(service, ...update, '--transformation-file', 'none', '--json'), /"transformation": ?null/)
  })

  test('a configuration file has every setting, and makes another installation equal', async (t) => {
    const folder = folderFor(t)
    const file = join(folder, 'switchyard.yaml')
    await using one = await startService()
    await using two = await startService()
    const { cert, key } = createCertificate({ commonName: 'client' })
    const create = (body: object): Promise<Named> =>
      one.api('/destinations', { method: 'POST', body: { sourceIds: [one.sourceId], ...body } })
    // It comes after the others in the file, and must be created before them.
    const letters = await create({ name: 'Letters', urls: ['https://letters.example/'] })
    await create({
      name: 'CRM',
      aliases: ['Old CRM', 'CRM (${EU})'],
      conditionalFilters: [
        { name: 'PII', when: 'type = "track"', action: 'drop_properties', fields: { properties: ['email'], '': ['userId'] } },
        { action: 'sample', share: 0.5, path: 'userId', enabled: false },
      ],
      deadLetter: letters.id,
      urls: ['https://crm.example/v1?account=hidden'],
      subscribe: 'type = "track"\n  and properties.total > 100',
      request: { method: 'PATCH', path: '/{{userId}}', headers: { 'X-Key': 'hidden' }, body: { id: { '@path': '$.userId' } } },
      auth: { type: 'oauth2', tokenUrl: 'https://id.example/token?tenant=hidden', clientId: 'me', clientSecret: 'hidden', scope: 'all' },
      tls: { certificate: cert, privateKey: key },
      transformation: { code: CODE, timeoutMs: 100 },
      retry: { initialMs: 1_000, retryStatuses: [409] },
    })
    const order = { by: 'context.groupId', onFailure: 'hold', maxWaiting: 500 }
    await create({ name: 'Chat', urls: ['https://chat.example/'], auth: { type: 'bearer', token: 'hidden' }, order })
    await one.api(`/sources/${one.sourceId}`, { method: 'PATCH', body: { privacy: [{ path: 'traits.email', action: 'hash' }] } })
    const run = async (service: typeof one, args: string[], env: Record<string, string> = {}) => {
      const result = await switchyardWith(env, service, ...args)
      assert.doesNotMatch(result.stdout + result.stderr, /hidden/)
      return result
    }
    const exported = await run(one, ['export', file])
    assert.equal(exported.code, 0, exported.stderr)
    const text = readFileSync(file, 'utf8')
    assert.doesNotMatch(text, /hidden|PRIVATE KEY/)
    assert.match(text, /subscribe: \|-\n +type = "track"\n +and properties\.total > 100\n/)
    assert.ok(text.includes(`code: |\n${CODE.trimEnd().replaceAll(/^/gm, ' '.repeat(8))}\n`), text)
    assert.match(text, /certificate: \|\n +-----BEGIN CERTIFICATE-----\n/)
    assert.match(text, /deadLetter: Letters\n/)
    assert.match(text, /order:\n +by: context\.groupId\n +onFailure: hold\n +maxWaiting: 500\n/)
    assert.match(text, /aliases:\n +- Old CRM\n/)
    assert.match(text, /privacy:\n +- path: traits\.email\n +action: hash\n/)
    const own = await run(one, ['apply', file, '--dry-run'])
    assert.equal(own.code, 0, own.stdout + own.stderr)

    const env = {
      CRM_URL_ACCOUNT: 'hidden',
      CRM_REQUEST_X_KEY: 'hidden',
      CRM_TOKEN_URL_TENANT: 'hidden',
      CRM_CLIENT_SECRET: 'hidden',
      CRM_PRIVATE_KEY: key,
      CHAT_TOKEN: 'hidden',
    }
    for (const name of Object.keys(env)) assert.match(exported.stdout + exported.stderr, new RegExp(name))
    const missing = await run(two, ['apply', file])
    assert.deepEqual(
      [missing.code, /auth\.clientSecret: the environment variable CRM_CLIENT_SECRET is not set/.test(missing.stderr)],
      [2, true],
    )
    const applied = await run(two, ['apply', file], env)
    assert.equal(applied.code, 0, applied.stderr)
    for (const again of [env, {}]) assert.equal((await run(two, ['apply', file, '--dry-run'], again)).code, 0, 'nothing would change')
    assert.equal((await run(two, ['export'])).stdout, text, 'the two installations export the same')
    const changed = await run(two, ['apply', file], { ...env, CHAT_TOKEN: 'new-hidden' })
    assert.match(changed.stdout, /^~ destination Chat\n {4}auth: ••• → ••• \(changed\)\nApplied 1 change\.$/m)
  })
})
