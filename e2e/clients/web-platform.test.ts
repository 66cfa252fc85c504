// The client without Node.js: bundled as for edge runtimes, and run in a context that has only the web's globals. Shared code that uses
// process, Buffer or a module of Node.js fails here.

import assert from 'node:assert/strict'
import { generateKeyPairSync, verify } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import vm from 'node:vm'
import { build } from 'esbuild'
import type * as Client from '../../packages/node/src/index.ts'
import { ACCESS_TOKEN, createTrackingEndpoint, REFUSED_KEY, type TrackingEndpoint } from './tracking-endpoint.ts'

const { outputFiles, metafile } = await build({
  entryPoints: [join(import.meta.dirname, '..', '..', 'packages', 'node', 'src', 'index.ts')],
  bundle: true,
  format: 'iife',
  globalName: 'client',
  platform: 'neutral',
  conditions: ['worker', 'browser'],
  target: 'es2022',
  metafile: true,
  write: false,
})
const bundle = outputFiles[0]?.text ?? ''

interface Edge {
  client: typeof Client
  /** URLs that fetch was called with. */
  fetched: string[]
  warnings: string[]
}

function edgeRuntime(): Edge {
  const fetched: string[] = []
  const warnings: string[] = []
  const globals = {
    fetch: (url: string, init: RequestInit) => {
      fetched.push(url)
      return fetch(url, init)
    },
    console: { log: () => {}, warn: (text: string) => warnings.push(text), error: () => {} },
    URL,
    URLSearchParams,
    TextEncoder,
    TextDecoder,
    crypto,
    AbortController,
    AbortSignal,
    setTimeout,
    clearTimeout,
    queueMicrotask,
    performance,
    Blob,
    Response,
    CompressionStream,
    btoa,
    atob,
    structuredClone,
  }
  const context = vm.createContext(globals)
  assert.equal(
    vm.runInContext('[typeof process, typeof Buffer, typeof require, typeof setImmediate].join()', context),
    'undefined,undefined,undefined,undefined',
  )
  vm.runInContext(bundle, context)
  return { client: (context as unknown as { client: typeof Client }).client, fetched, warnings }
}

async function withEndpoint(use: (endpoint: TrackingEndpoint) => Promise<void>): Promise<void> {
  const endpoint = await createTrackingEndpoint()
  try {
    await use(endpoint)
  } finally {
    await endpoint.close()
  }
}

test('the bundle contains no module of Node.js', () => {
  const inputs = Object.keys(metafile.inputs)
  assert.ok(inputs.some((path) => path.endsWith('src/platform/web.ts')))
  assert.deepEqual(
    inputs.filter((path) => /platform\/node/.test(path)),
    [],
  )
  assert.deepEqual(
    Object.values(metafile.outputs).flatMap((output) => output.imports),
    [],
  )
  assert.doesNotMatch(bundle, /['"]node:/)
})

/** Copies an object of the other context into this one, because deepEqual compares prototypes. */
const here = (value: object): object => ({ ...value })

test('calls are sent with fetch', () =>
  withEndpoint(async ({ url, messages, headers }) => {
    const { client, fetched, warnings } = edgeRuntime()
    const analytics = new client.Analytics({ writeKey: 'edge', host: url })
    const outcome = new Promise((resolve) => analytics.track({ userId: 'u-1', event: 'At The Edge', properties: { note: 'é ✓' } }, resolve))
    analytics.identify({ userId: 'u-1', traits: { plan: 'pro' } })
    assert.deepEqual(here(await analytics.flush()), { stored: 2, failed: 0, pending: 0 })
    assert.equal(await outcome, undefined)
    analytics.page({ anonymousId: 'a-1', name: 'Home' })
    assert.deepEqual(here(await analytics.closeAndFlush()), { stored: 1, failed: 0, pending: 0 })

    assert.deepEqual(
      messages.map(({ type }) => type),
      ['track', 'identify', 'page'],
    )
    assert.deepEqual(messages[0]?.['properties'], { note: 'é ✓' })
    assert.match(messages[0]?.messageId ?? '', /^[0-9a-f-]{36}$/)
    assert.deepEqual(fetched, [`${url}/v1/batch`, `${url}/v1/batch`])
    assert.equal(headers[0]?.['authorization'], `Basic ${btoa('edge:')}`)
    assert.deepEqual(warnings, [])
  }))

test('an error without a listener is a warning on the console', () =>
  withEndpoint(async ({ url }) => {
    const { client, warnings } = edgeRuntime()
    const analytics = new client.Analytics({ writeKey: REFUSED_KEY, host: url, maxRetries: 0 })
    analytics.track({ userId: 'u-1', event: 'Refused' })
    assert.deepEqual(here(await analytics.closeAndFlush()), { stored: 0, failed: 1, pending: 0 })
    assert.equal(warnings.length, 1)
    assert.match(warnings[0] ?? '', /delivery_failure/)
  }))

for (const [alg, pair] of [
  ['RS256', generateKeyPairSync('rsa', { modulusLength: 2048 })],
  ['ES256', generateKeyPairSync('ec', { namedCurve: 'P-256' })],
  ['EdDSA', generateKeyPairSync('ed25519')],
] as const) {
  test(`a token is requested with an assertion signed by WebCrypto: ${alg}`, () =>
    withEndpoint(async ({ url, messages, headers, tokenForms }) => {
      const { publicKey: key, privateKey } = pair
      const clientKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
      const { client, fetched } = edgeRuntime()
      const analytics = new client.Analytics({ writeKey: 'edge', host: url, oauthSettings: { clientId: 'app', clientKey, keyId: 'key-1' } })
      analytics.track({ userId: 'u-1', event: 'With Token' })
      assert.deepEqual(here(await analytics.closeAndFlush()), { stored: 1, failed: 0, pending: 0 })

      assert.deepEqual(fetched, [`${url}/oauth2/token`, `${url}/v1/batch`])
      assert.equal(headers[0]?.['authorization'], `Bearer ${ACCESS_TOKEN}`)
      assert.equal(messages.length, 1)
      const [header = '', claims = '', signature = ''] = tokenForms[0]?.get('client_assertion')?.split('.') ?? []
      const read = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString())
      assert.deepEqual(read(header), { alg, typ: 'JWT', kid: 'key-1' })
      assert.partialDeepStrictEqual(read(claims), { iss: 'app', sub: 'app', aud: `${url}/oauth2` })
      const input = Buffer.from(`${header}.${claims}`)
      const digest = alg === 'EdDSA' ? null : 'sha256'
      assert.ok(verify(digest, input, alg === 'ES256' ? { key, dsaEncoding: 'ieee-p1363' } : key, Buffer.from(signature, 'base64url')))
    }))
}

test('gzip compresses with the web’s own streams', () =>
  withEndpoint(async ({ url, messages, headers }) => {
    const { client } = edgeRuntime()
    const analytics = new client.Analytics({ writeKey: 'edge', host: url, gzip: true })
    analytics.track({ userId: 'u-1', event: 'Compressed' })
    assert.deepEqual(here(await analytics.closeAndFlush()), { stored: 1, failed: 0, pending: 0 })
    assert.equal(headers[0]?.['content-encoding'], 'gzip')
    assert.equal(messages.length, 1)
  }))

test('settings that need a disk or a process are refused at once, and with a key in another format messages fail', async () => {
  const { client } = edgeRuntime()
  const oauthSettings = { clientId: 'app', clientKey: 'not a key', keyId: 'key-1' }
  assert.throws(() => new client.Analytics({ writeKey: 'edge', spool: { dir: 'spool' } }), {
    code: 'invalid_settings',
    field: 'spool.dir',
    message: /this runtime has no file system/,
  })
  assert.throws(() => new client.Analytics({ writeKey: 'edge', handleSignals: true }), {
    code: 'invalid_settings',
    field: 'handleSignals',
    message: /this runtime has no process signals/,
  })
  const analytics = new client.Analytics({ writeKey: 'edge', oauthSettings })
  const codes: string[] = []
  analytics.on('error', ({ code }: { code: string }) => codes.push(code))
  analytics.track({ userId: 'u', event: 'e' })
  await analytics.closeAndFlush()
  assert.deepEqual(codes, ['oauth_failure'])
})
