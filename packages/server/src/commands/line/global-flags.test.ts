import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { keepToken } from '../service/kept-tokens.ts'
import { controlToken, serviceUrl } from './global-flags.ts'

test('the URL of the service comes from the flag, the variable, or the settings of serve', () => {
  assert.equal(serviceUrl(undefined, {}), 'http://127.0.0.1:8080')
  assert.equal(serviceUrl(undefined, { SWITCHYARD_PORT: '9000' }), 'http://127.0.0.1:9000')
  assert.equal(serviceUrl(undefined, { SWITCHYARD_HOST: '0.0.0.0', SWITCHYARD_PORT: '0' }), 'http://127.0.0.1:8080')
  assert.equal(serviceUrl(undefined, { SWITCHYARD_HOST: '::' }), 'http://[::1]:8080')
  assert.equal(serviceUrl(undefined, { SWITCHYARD_URL: 'https://x.example/base/', SWITCHYARD_PORT: '9000' }), 'https://x.example/base')
  assert.equal(serviceUrl('http://flag:1', { SWITCHYARD_URL: 'http://variable:2' }), 'http://flag:1')
  assert.equal(serviceUrl(undefined, { SWITCHYARD_URL: '' }), 'http://127.0.0.1:8080')
})

test('an invalid URL is rejected without quoting it', () => {
  for (const url of ['x', 'ftp://x', 'http://user:hush@x', 'http://x?token=hush', 'file:///etc/passwd'])
    assert.throws(
      () => serviceUrl(url, {}),
      (error: Error) => /--url must be the http:/.test(error.message) && !/hush/.test(error.message),
    )
  assert.throws(() => serviceUrl(undefined, { SWITCHYARD_URL: 'x' }), /SWITCHYARD_URL must be/)
  assert.throws(() => serviceUrl(undefined, { SWITCHYARD_PORT: 'x' }), /SWITCHYARD_PORT must be/)
})

test('the token comes from the flag, the variable, the login at this address, or the admin token', (t) => {
  const url = 'http://127.0.0.1:8080'
  const env = { XDG_CONFIG_HOME: mkdtempSync(join(tmpdir(), 'switchyard-flags-')) }
  t.after(() => rmSync(env.XDG_CONFIG_HOME, { recursive: true }))
  assert.deepEqual(controlToken(undefined, env, url), { token: null, tokenFrom: null })
  const admin = { ...env, SWITCHYARD_ADMIN_TOKEN: 'a' }
  assert.deepEqual(controlToken(undefined, admin, url), { token: 'a', tokenFrom: 'SWITCHYARD_ADMIN_TOKEN' })
  keepToken(env, url, { id: 'tok_1', token: 'k' })
  assert.deepEqual(controlToken(undefined, admin, url), { token: 'k', tokenFrom: 'switchyard login' })
  // Another address gets neither this token nor a part of it.
  for (const other of ['http://localhost:8080', 'http://127.0.0.1:8081', 'https://127.0.0.1:8080', `${url}/path`])
    assert.deepEqual(controlToken(undefined, env, other), { token: null, tokenFrom: null })
  const both = { ...admin, SWITCHYARD_TOKEN: 't' }
  assert.deepEqual(controlToken(undefined, both, url), { token: 't', tokenFrom: 'SWITCHYARD_TOKEN' })
  assert.deepEqual(controlToken('f', both, url), { token: 'f', tokenFrom: '--token' })
})

test('a token that is not valid in a header is rejected without quoting it', () => {
  assert.throws(
    () => controlToken('hush\r\nX-Evil: 1', {}, 'http://127.0.0.1:8080'),
    (error: Error) => /visible ASCII/.test(error.message) && !/hush/.test(error.message),
  )
})
