import assert from 'node:assert/strict'
import net from 'node:net'
import test from 'node:test'
import { proxyFor } from './node-proxy.ts'

const PROXY = 'http://proxy.example:3128'

function nameFor(url: string, env: Record<string, string>): string | undefined {
  return proxyFor(net, new URL(url), env)?.name
}

for (const [url, env, name] of [
  ['http://a.example', { HTTP_PROXY: PROXY }, PROXY],
  ['http://a.example', { HTTP_PROXY: 'http://upper:1', http_proxy: 'http://lower:1' }, 'http://lower:1'],
  ['http://a.example', { HTTPS_PROXY: PROXY }, undefined],
  ['http://a.example', { HTTP_PROXY: '' }, undefined],
  ['https://a.example', { HTTPS_PROXY: 'http://for-https:1', HTTP_PROXY: PROXY }, 'http://for-https:1'],
  ['https://a.example', { HTTP_PROXY: PROXY }, PROXY],
  ['http://a.example', { HTTP_PROXY: 'proxy.example:3128' }, PROXY],
  ['http://a.example', { HTTP_PROXY: 'http://user:secret@proxy.example:3128/path' }, PROXY],
  ['http://a.example', { HTTP_PROXY: 'http://[::1]:3128' }, 'http://[::1]:3128'],
] as const) {
  test(`${url} with ${JSON.stringify(env)}: ${name ?? 'no proxy'}`, () => assert.equal(nameFor(url, env), name))
}

for (const [list, url, isExempt] of [
  ['*', 'http://a.example', true],
  ['a.example', 'http://a.example', true],
  ['A.Example', 'http://a.example', true],
  ['a.example', 'http://b.a.example', false],
  ['b.example, a.example', 'http://a.example', true],
  ['b.example a.example', 'http://a.example', true],
  ['.example', 'http://a.example', true],
  ['*.example', 'http://a.example', true],
  ['.a.example', 'http://ba.example', false],
  ['a.example:8080', 'http://a.example:8080', true],
  ['a.example:8080', 'http://a.example', false],
  ['a.example:443', 'https://a.example', true],
  ['127.0.0.1', 'http://127.0.0.1:8080', true],
  ['10.0.0.0/8', 'http://10.1.2.3', true],
  ['10.0.0.0/8', 'http://11.1.2.3', false],
  ['10.0.0.1-10.0.0.9', 'http://10.0.0.9', true],
  ['10.0.0.1-10.0.0.9', 'http://10.0.0.10', false],
  ['::1', 'http://[::1]:8080', true],
  ['[::1]', 'http://[::1]:8080', true],
  ['[::1]:8080', 'http://[::1]:8080', true],
  ['[::1]:8081', 'http://[::1]:8080', false],
  ['0:0:0:0:0:0:0:1', 'http://[::1]', true],
  ['fd00::/8', 'http://[fd00::5]', true],
  ['10.0.0.0/99,nonsense-/,', 'http://10.1.2.3', false],
] as const) {
  test(`NO_PROXY=${list} ${isExempt ? 'exempts' : 'does not exempt'} ${url}`, () => {
    for (const name of ['NO_PROXY', 'no_proxy']) {
      assert.equal(nameFor(url, { HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY, [name]: list }), isExempt ? undefined : PROXY)
    }
  })
}

test('credentials in the URL of the proxy become Proxy-Authorization, decoded', () => {
  const proxy = proxyFor(net, new URL('http://a.example'), { HTTP_PROXY: 'http://us%40er:p%3Aw@[::1]' })
  assert.deepEqual(proxy, {
    name: 'http://[::1]',
    isSecure: false,
    address: { host: '::1', port: 80, autoSelectFamily: true },
    headers: { 'Proxy-Authorization': `Basic ${Buffer.from('us@er:p:w').toString('base64')}` },
  })
})

for (const value of ['socks5://user:secret@proxy.example', 'http://user:secret@']) {
  test(`${value} is refused without repeating its password`, () => {
    assert.throws(
      () => nameFor('https://a.example', { HTTPS_PROXY: value }),
      (error: Error) => error.message.startsWith('HTTPS_PROXY must be the URL of an HTTP proxy') && !error.message.includes('secret'),
    )
  })
}
