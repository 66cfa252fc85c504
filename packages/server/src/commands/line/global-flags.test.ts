import assert from 'node:assert/strict'
import test from 'node:test'
import { controlToken, serviceUrl } from './global-flags.ts'

test('the service is where the flag, the variable, or the settings of serve say', () => {
  assert.equal(serviceUrl(undefined, {}), 'http://127.0.0.1:8080')
  assert.equal(serviceUrl(undefined, { SWITCHYARD_PORT: '9000' }), 'http://127.0.0.1:9000')
  assert.equal(serviceUrl(undefined, { SWITCHYARD_HOST: '0.0.0.0', SWITCHYARD_PORT: '0' }), 'http://127.0.0.1:8080')
  assert.equal(serviceUrl(undefined, { SWITCHYARD_HOST: '::' }), 'http://[::1]:8080')
  assert.equal(serviceUrl(undefined, { SWITCHYARD_URL: 'https://x.example/base/', SWITCHYARD_PORT: '9000' }), 'https://x.example/base')
  assert.equal(serviceUrl('http://flag:1', { SWITCHYARD_URL: 'http://variable:2' }), 'http://flag:1')
  assert.equal(serviceUrl(undefined, { SWITCHYARD_URL: '' }), 'http://127.0.0.1:8080')
})

test('what is no address of a service is refused without quoting it', () => {
  for (const url of ['x', 'ftp://x', 'http://user:hush@x', 'http://x?token=hush', 'file:///etc/passwd'])
    assert.throws(
      () => serviceUrl(url, {}),
      (error: Error) => /--url must be the address/.test(error.message) && !/hush/.test(error.message),
    )
  assert.throws(() => serviceUrl(undefined, { SWITCHYARD_URL: 'x' }), /SWITCHYARD_URL must be/)
  assert.throws(() => serviceUrl(undefined, { SWITCHYARD_PORT: 'x' }), /SWITCHYARD_PORT must be/)
})

test('the token: flag, variable, then the admin token; one that would break a header is refused unquoted', () => {
  assert.equal(controlToken(undefined, {}), null)
  assert.equal(controlToken(undefined, { SWITCHYARD_ADMIN_TOKEN: 'a' }), 'a')
  assert.equal(controlToken(undefined, { SWITCHYARD_ADMIN_TOKEN: 'a', SWITCHYARD_TOKEN: 't' }), 't')
  assert.equal(controlToken('f', { SWITCHYARD_TOKEN: 't' }), 'f')
  assert.throws(
    () => controlToken('hush\r\nX-Evil: 1', {}),
    (error: Error) => /visible ASCII/.test(error.message) && !/hush/.test(error.message),
  )
})
