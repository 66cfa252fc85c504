import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LOGIN_PROBLEMS } from '../api/rules.ts'
import { loginAddress, pathAfterLogin, problemOf } from './login-address.ts'

const at = (path: string) => {
  const { origin, pathname, search } = new URL(path, 'https://switchyard.example')
  return { origin, pathname, search }
}

test('the login returns to the page that was opened', () => {
  assert.equal(pathAfterLogin(at('/deliveries?state=failed')), '/deliveries?state=failed')
  assert.equal(loginAddress(at('/deliveries?state=failed')), '/api/login/oidc?returnTo=%2Fdeliveries%3Fstate%3Dfailed')
})

test('after a login that failed, it returns to the path that the service named, and never to another host', () => {
  assert.equal(pathAfterLogin(at('/?login=unreachable&returnTo=%2Fplans%3Fa%3Db')), '/plans?a=b')
  assert.equal(pathAfterLogin(at('/?login=unreachable')), '/')
  for (const hostile of [
    'https://evil.example/',
    '//evil.example/',
    '/\\evil.example',
    '/.//evil.example',
    'javascript:alert(1)',
    'x',
    '/\t/evil.example',
  ])
    assert.equal(pathAfterLogin(at(`/?login=unreachable&returnTo=${encodeURIComponent(hostile)}`)), '/', hostile)
  // Without a failed login, the parameter is one of the page.
  assert.equal(pathAfterLogin(at('/plans?returnTo=x')), '/plans?returnTo=x')
})

test('every problem of the provider has words, and an unknown code shows nothing', () => {
  for (const reason of Object.keys(LOGIN_PROBLEMS)) {
    const { message, advice } = problemOf(`?login=${reason}`) ?? { message: '', advice: '' }
    assert.match(message, /^[A-Z].*\.$/)
    assert.match(advice, /^[A-Z].*\.$/)
  }
  for (const unknown of ['', 'constructor', '__proto__', 'Call%20me']) assert.equal(problemOf(`?login=${unknown}`), null)
  assert.equal(problemOf(''), null)
})
