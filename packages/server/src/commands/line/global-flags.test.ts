import assert from 'node:assert/strict'
import test from 'node:test'
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

test('the token comes from the flag, the variable, or the admin token; one that is not valid in a header is rejected without quoting it', () => {
  assert.equal(controlToken(undefined, {}), null)
  assert.equal(controlToken(undefined, { SWITCHYARD_ADMIN_TOKEN: 'a' }), 'a')
  assert.equal(controlToken(undefined, { SWITCHYARD_ADMIN_TOKEN: 'a', SWITCHYARD_TOKEN: 't' }), 't')
  assert.equal(controlToken('f', { SWITCHYARD_TOKEN: 't' }), 'f')
  assert.throws(
    () => controlToken('hush\r\nX-Evil: 1', {}),
    (error: Error) => /visible ASCII/.test(error.message) && !/hush/.test(error.message),
  )
})
