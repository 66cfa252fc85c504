// OAuth 2.0 from end to end: an application and its keys in the control API, a source that requires a token, and messages that reach a
// webhook. With our client; third-party clients are tested in compatibility/.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { Analytics } from '@switchyard/node'
import { ON_POSTGRES } from '../../packages/server/src/store/fixtures/test-store.ts'
import { startSwitchyard } from '../system/command-line.ts'
import { startInProcess } from '../system/in-process.ts'
import { type Receiver, startReceiver } from '../system/receiver.ts'
import { type Service, startService, TOKEN } from '../system/service.ts'
import { type Wiring, wire } from '../system/wiring.ts'

let service: Service
let receiver: Receiver

before(async () => {
  service = await startService()
  receiver = await startReceiver()
})

after(async () => {
  await service[Symbol.asyncDispose]()
  await receiver.close()
})

type KeyType = 'rsa' | 'ec' | 'ed25519'

function keyPair(type: KeyType = 'rsa') {
  const { publicKey, privateKey } =
    type === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : type === 'ec'
        ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
        : generateKeyPairSync('ed25519')
  return {
    publicKeyPem: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    clientKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

interface Guarded extends Wiring {
  appId: string
  oauthSettings: { clientId: string; clientKey: string; keyId: string; authServer: string }
  app: (path?: string, init?: { method?: string; body?: unknown }) => Promise<AppView>
}

interface AppView {
  id: string
  keyId: string
  keys: { id: string }[]
  tokensRevokedBefore: string | null
}

/** A source that requires OAuth, with a webhook and an application. */
async function guarded(type?: KeyType): Promise<Guarded> {
  const wiring = await wire(service, { urls: [receiver.url] })
  await service.api(`/sources/${wiring.sourceId}`, { method: 'PATCH', body: { requireOAuth: true } })
  const { publicKeyPem, clientKey } = keyPair(type)
  const body = { name: 'Backend', sourceIds: [wiring.sourceId] }
  const { id: appId } = await service.api<AppView>('/oauth-apps', { method: 'POST', body })
  const app: Guarded['app'] = (path = '', init) => service.api(`/oauth-apps/${appId}${path}`, init)
  const { keyId } = await app('/keys', { method: 'POST', body: { publicKeyPem } })
  return { ...wiring, appId, app, oauthSettings: { clientId: appId, clientKey, keyId, authServer: `${service.url}/oauth2` } }
}

/** With another Host header than the address of the connection. */
function postAs(host: string, url: string, headers: Record<string, string>, body: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sending = request(url, { method: 'POST', headers: { ...headers, host } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }))
    })
    sending.on('error', reject)
    sending.end(body)
  })
}

const arrived = (ids: readonly string[]): Promise<void> => receiver.until(() => ids.every((id) => receiver.byMessageId.has(id)))
const idsOf = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, at) => `${prefix} ${at}`)

describe('OAuth 2.0', () => {
  for (const type of ['rsa', 'ec', 'ed25519'] as const) {
    test(`@switchyard/node sends with a token that it got with an ${type} key, and every message arrives once`, async () => {
      const { writeKey, oauthSettings } = await guarded(type)
      // The authorization server is known from the host.
      const { authServer: _, ...own } = oauthSettings
      const analytics = new Analytics({ writeKey, host: service.url, oauthSettings: own })
      const ids = idsOf(`ours ${type}`, 100)
      for (const messageId of ids) analytics.track({ userId: 'u-1', event: 'Tested', messageId })
      assert.deepEqual(await analytics.flush({ close: true }), { stored: 100, failed: 0, pending: 0 })
      await arrived(ids)
      for (const id of ids) assert.equal(receiver.byMessageId.get(id)?.length, 1)
    })
  }

  test('our client replaces a revoked token, and nothing is lost', async () => {
    const { writeKey, oauthSettings, app } = await guarded()
    const answers: number[] = []
    let tokens = 0
    const analytics = new Analytics({
      writeKey,
      host: service.url,
      oauthSettings,
      maxRetries: 0,
      httpClient: async (url, init) => {
        const response = await fetch(url, init)
        if (url.endsWith('/token')) tokens++
        else answers.push(response.status)
        return response
      },
    })
    const send = async (prefix: string): Promise<string[]> => {
      const ids = idsOf(prefix, 15)
      for (const messageId of ids) analytics.track({ userId: 'u-1', event: 'Tested', messageId })
      const { failed } = await analytics.flush()
      assert.equal(failed, 0)
      return ids
    }
    const first = await send('before the revocation')
    // Each time the client gets a new token at once.
    for (let round = 1; round <= 3; round++) {
      await app('/revoke-tokens', { method: 'POST' })
      await arrived(await send(`after revocation ${round}`))
    }
    await arrived(first)
    await analytics.flush({ close: true })
    assert.deepEqual(answers, [200, 401, 200, 401, 200, 401, 200])
    assert.equal(tokens, 4)
  })

  test('a key is replaced without interruption: the new one is added, then the old one removed', async () => {
    const { writeKey, oauthSettings, app } = await guarded()
    const next = keyPair('ec')
    const old = new Analytics({ writeKey, host: service.url, oauthSettings, maxRetries: 0 })
    old.track({ userId: 'u-1', event: 'Tested', messageId: 'by the old key' })
    await old.flush()
    const { keyId } = await app('/keys', { method: 'POST', body: { id: 'next', publicKeyPem: next.publicKeyPem } })
    assert.equal(keyId, 'next')
    const young = new Analytics({ writeKey, host: service.url, oauthSettings: { ...oauthSettings, keyId, clientKey: next.clientKey } })
    young.track({ userId: 'u-1', event: 'Tested', messageId: 'by the new key' })
    await young.flush()
    await app(`/keys/${oauthSettings.keyId}`, { method: 'DELETE' })
    // Tokens that were issued for the removed key are invalid from now on, and no more can be issued for it.
    const errors: string[] = []
    old.on('error', ({ code }) => errors.push(code))
    old.track({ userId: 'u-1', event: 'Tested', messageId: 'by the removed key' })
    assert.equal((await old.flush({ close: true })).failed, 1)
    assert.deepEqual(errors, ['oauth_failure'])
    young.track({ userId: 'u-1', event: 'Tested', messageId: 'by the new key, later' })
    await young.flush({ close: true })
    await arrived(['by the old key', 'by the new key', 'by the new key, later'])
    assert.ok(!receiver.byMessageId.has('by the removed key'))
  })

  test('a source that requires OAuth rejects calls with only a write key, or with a token of another application', async () => {
    const [own, other] = [await guarded(), await guarded()]
    const tokenOf = async ({ oauthSettings }: Guarded): Promise<string> => {
      let token = ''
      const analytics = new Analytics({ writeKey: own.writeKey, host: service.url, oauthSettings, maxRetries: 0 })
      // One of them is refused, as expected.
      analytics.on('error', () => {})
      analytics.on('http_request', ({ headers }) => {
        token = String(headers['Authorization']).slice('Bearer '.length)
      })
      analytics.track({ userId: 'u-1', event: 'Tested' })
      await analytics.flush({ close: true })
      return token
    }
    const send = async (messageId: string, authorization: string | null): Promise<[number, string | undefined]> => {
      const body = { batch: [{ type: 'track', userId: 'u-1', event: 'Tested', messageId }], writeKey: own.writeKey }
      const headers = authorization === null ? {} : { authorization }
      const response = await fetch(`${service.url}/v1/batch`, { method: 'POST', headers, body: JSON.stringify(body) })
      return [response.status, ((await response.json()) as { code?: string }).code]
    }
    const token = await tokenOf(own)
    assert.deepEqual(await send('no token', null), [401, 'oauth_required'])
    assert.deepEqual(await send('key alone', `Basic ${btoa(`${own.writeKey}:`)}`), [401, 'oauth_required'])
    assert.deepEqual(await send('no JWT', 'Bearer x'), [401, 'invalid_access_token'])
    assert.deepEqual(await send('changed', `Bearer ${token.slice(0, -3)}AAA`), [401, 'invalid_access_token'])
    assert.deepEqual(await send('of another', `Bearer ${await tokenOf(other)}`), [403, 'source_not_allowed'])
    assert.deepEqual(await send('good', `Bearer ${token}`), [200, undefined])
    // The present sources of the application count, not those at the time when the token was issued.
    await own.app('', { method: 'PATCH', body: { sourceIds: [] } })
    assert.deepEqual(await send('detached', `Bearer ${token}`), [403, 'source_not_allowed'])
    await own.app('', { method: 'PATCH', body: { sourceIds: [own.sourceId] } })
    assert.deepEqual(await send('attached', `Bearer ${token}`), [200, undefined])
    await own.app('', { method: 'DELETE' })
    assert.deepEqual(await send('deleted', `Bearer ${token}`), [401, 'invalid_access_token'])
    await service.api(`/sources/${own.sourceId}`, { method: 'PATCH', body: { requireOAuth: false } })
    assert.deepEqual(await send('not required', `Basic ${btoa(`${own.writeKey}:`)}`), [200, undefined])
    await arrived(['good', 'attached', 'not required'])
    for (const refused of ['no token', 'key alone', 'no JWT', 'changed', 'of another', 'detached', 'deleted']) {
      assert.ok(!receiver.byMessageId.has(refused), refused)
    }
  })

  test('tokens survive a restart, and a used assertion cannot be used again', async () => {
    await using first = await startService()
    const { publicKeyPem, clientKey } = keyPair()
    const app = await first.api<AppView>('/oauth-apps', {
      method: 'POST',
      body: { name: 'Backend', sourceIds: [first.sourceId], keys: [{ id: 'k', publicKeyPem }] },
    })
    await first.api(`/sources/${first.sourceId}`, { method: 'PATCH', body: { requireOAuth: true } })
    let form = ''
    let token = ''
    const { writeKey, url } = first
    const analytics = new Analytics({
      writeKey,
      host: url,
      oauthSettings: { clientId: app.id, clientKey, keyId: 'k' },
      httpClient: {
        async makeRequest({ url: to, headers, body }) {
          if (to.endsWith('/token')) form = body
          else token = String(headers['Authorization'])
          return fetch(to, { method: 'POST', headers, body })
        },
      },
    })
    analytics.track({ userId: 'u-1', event: 'Tested' })
    assert.equal((await analytics.flush({ close: true })).delivered, 1)
    await first.stop()
    const second = await first.restart()
    // It has another port then. Requests name the old one, as behind a proxy that kept its address.
    const { host } = new URL(url)
    const asForm = { 'content-type': 'application/x-www-form-urlencoded' }
    const again = await postAs(host, `${second.url}/oauth2/token`, asForm, form)
    const refusal = JSON.parse(again.text) as { error: string; error_description: string }
    assert.deepEqual([again.status, refusal.error], [401, 'invalid_client'])
    assert.match(refusal.error_description, /was already used/)
    const message = JSON.stringify({ userId: 'u-1', event: 'Tested', writeKey })
    const sent = await postAs(host, `${second.url}/v1/track`, { authorization: token }, message)
    assert.equal(sent.status, 200, sent.text)
    const body = JSON.stringify({ token: TOKEN })
    const login = await fetch(`${second.url}/api/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    const cookie = login.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    const withCookie = async (base: string): Promise<number> => (await fetch(`${base}/api/session`, { headers: { cookie } })).status
    assert.equal(await withCookie(second.url), 200)
    // Tokens become invalid with the keys that sign them, in case the store and its key were leaked.
    await second.stop()
    // On PostgreSQL the key is never in a file, so the operator provides the new one.
    const next = ON_POSTGRES ? 'the next key' : undefined
    const env = { ...second.storeEnv, ...(next === undefined ? {} : { SWITCHYARD_NEW_SECRET_KEY: next }) }
    const rotated = await startSwitchyard(second, ['rotate-key', '--end-tokens'], { env }).ended
    assert.match(rotated.stdout, /access tokens are now rejected/, rotated.stderr)
    const third = await second.restart(next === undefined ? {} : { env: { SWITCHYARD_SECRET_KEY: next } })
    const late = await postAs(host, `${third.url}/v1/track`, { authorization: token }, message)
    assert.deepEqual([late.status, (JSON.parse(late.text) as { code: string }).code], [401, 'invalid_access_token'])
    assert.equal(await withCookie(third.url), 401)
  })

  test('a request that is sent very slowly is aborted, also on paths without another timeout', async () => {
    await using hasty = await startInProcess({ bodyTimeoutMs: 400 })
    const { port } = new URL(hasty.url)
    for (const head of [
      'POST /oauth2/token HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n',
      `POST /api/sources HTTP/1.1\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`,
    ]) {
      const socket = connect(Number(port), '127.0.0.1')
      const answer: Buffer[] = []
      socket.on('data', (chunk: Buffer) => answer.push(chunk))
      socket.write(`${head}Host: x\r\nContent-Length: 500\r\n\r\n{`)
      await once(socket, 'close', { signal: AbortSignal.timeout(20_000) })
      assert.match(Buffer.concat(answer).toString(), /^HTTP\/1\.1 408 /, head)
    }
  })

  test('aborted requests of unauthenticated clients are not logged, on any path', async () => {
    await using own = await startService()
    const { port } = new URL(own.url)
    for (const path of ['/oauth2/token', '/oauth2/other', '/api/login', '/api/sources', '/nothing', '/v1/track']) {
      for (const type of ['application/json', 'application/x-www-form-urlencoded', 'x']) {
        const socket = connect(Number(port), '127.0.0.1')
        socket.resume().end(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 500\r\n\r\n{`)
        await once(socket, 'close')
      }
    }
    const { stderr } = await own.stop()
    assert.doesNotMatch(stderr, /"level":"error"/)
  })

  test('behind a trusted proxy, the address of the service is the one that the client uses', async () => {
    await using proxied = await startService({ env: { SWITCHYARD_TRUSTED_PROXIES: '127.0.0.1' } })
    const { publicKeyPem, clientKey } = keyPair('ec')
    const body = { name: 'Backend', sourceIds: [proxied.sourceId], keys: [{ id: 'k', publicKeyPem }] }
    const app = await proxied.api<AppView>('/oauth-apps', { method: 'POST', body })
    await proxied.api(`/sources/${proxied.sourceId}`, { method: 'PATCH', body: { requireOAuth: true } })
    const throughProxy = (forwarded: string): Analytics =>
      new Analytics({
        writeKey: proxied.writeKey,
        host: 'https://events.example.com',
        oauthSettings: { clientId: app.id, clientKey, keyId: 'k', maxRetries: 0 },
        maxRetries: 0,
        httpClient: (url, init) => {
          const headers = { ...(init?.headers as object), 'x-forwarded-host': forwarded, 'x-forwarded-proto': 'https' }
          return fetch(url.replace('https://events.example.com', proxied.url), { ...init, headers })
        },
      })
    for (const [forwarded, expected] of [
      ['events.example.com', 1],
      ['other.example.com', 0],
    ] as const) {
      const analytics = throughProxy(forwarded)
      analytics.on('error', () => {})
      analytics.track({ userId: 'u-1', event: 'Tested' })
      assert.equal((await analytics.flush({ close: true })).delivered, expected, forwarded)
    }
  })
})

describe('Secrets', () => {
  test('are in no answer, log line, error or file', async () => {
    await using own = await startService({ log: 'trace' })
    await using receiving = await startReceiver(() => ({ status: 500 }))
    const secrets = {
      sharedSecret: 'SECRETshared0123456789',
      signingSecrets: [`whsec_${Buffer.from('SECRETsigning01234567890123456789').toString('base64')}`],
    }
    const { clientKey, publicKeyPem } = keyPair('ed25519')
    const hidden = [
      secrets.sharedSecret,
      ...secrets.signingSecrets,
      Buffer.from(secrets.sharedSecret).toString('base64url'),
      clientKey.split('\n')[1] as string,
      'PRIVATE KEY-----\n',
      own.storeEnv['SWITCHYARD_SECRET_KEY'] ?? readFileSync(`${own.file}.key`, 'utf8').trim(),
    ]
    const answers: string[] = []
    const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<string> => {
      const response = await fetch(`${own.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${own.token}`, ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      const text = `${JSON.stringify([...response.headers])} ${await response.text()}`
      answers.push(text)
      return text
    }
    const settings = { name: 'hook', sourceIds: [own.sourceId], urls: [receiving.url], ...secrets }
    const [, id = ''] = /"id":"(dst_\w+)"/.exec(await call('POST', '/api/destinations', settings)) ?? []
    assert.notEqual(id, '')
    const path = `/api/destinations/${id}`
    // Valid and invalid requests, each with secrets in it.
    await call('GET', path)
    await call('GET', '/api/destinations')
    await call('PATCH', path, { sharedSecret: secrets.sharedSecret, unknown: secrets.sharedSecret })
    await call('PATCH', path, { signingSecrets: [...secrets.signingSecrets, 'whsec_SECRETshared0123456789'] })
    await call('PATCH', path, { signingSecrets: secrets.sharedSecret })
    await call('PATCH', path, { sharedSecret: [secrets.sharedSecret] })
    await call('PATCH', path, `{"sharedSecret":"${secrets.sharedSecret}"`)
    await call('PATCH', path, { sharedSecret: secrets.sharedSecret })
    await call('POST', '/api/oauth-apps', { name: 'x', keys: [{ publicKeyPem: clientKey }] })
    await call('POST', '/api/oauth-apps', { name: 'x', keys: [{ publicKeyPem }] })
    await call('POST', '/oauth2/token', `grant_type=client_credentials&client_assertion=${secrets.sharedSecret}`, {
      'content-type': 'application/x-www-form-urlencoded',
    })
    await call('POST', `${path}/test`, {})
    await own.send([{ type: 'track', userId: 'u-1', event: 'Tested', messageId: 'm-1' }])
    await own.logged(({ msg }) => /the attempt failed/.test(msg))
    for (const read of ['/api/messages/m-1', '/api/messages', '/api/deliveries', `${path}/health`, '/api/audit', '/metrics']) {
      await call('GET', read)
    }
    const [delivery] = await own.deliveries()
    await call('GET', `/api/deliveries/${delivery?.id}`)
    const whileRunning = await own.stored()
    await call('DELETE', path)
    assert.equal((await own.stop()).code, 0)
    const afterwards = await own.stored()
    const places: Record<string, Buffer> = {
      answers: Buffer.from(answers.join('\n')),
      log: Buffer.from(own.stderr()),
      'start message': Buffer.from(own.stdout()),
      ...Object.fromEntries(whileRunning.map(([name, bytes]) => [`${name}, while it ran`, bytes])),
      ...Object.fromEntries(afterwards),
    }
    for (const [place, bytes] of Object.entries(places)) {
      for (const secret of hidden) assert.ok(!bytes.includes(secret), `${secret} is in ${place}`)
    }
    // The search finds values that are not encrypted, so it would have found the secrets.
    assert.ok(answers.some((text) => text.includes('"hasSharedSecret":true')))
    assert.ok(whileRunning.some(([, bytes]) => bytes.includes('"sharedSecret":"v1.')))
    assert.ok(afterwards.some(([, bytes]) => bytes.includes(receiving.url)))
  })
})
