import assert from 'node:assert/strict'
import test from 'node:test'
import { addressOf, isAddressOf } from './server-address.ts'

const cases: [address: string, host: string | undefined, isOwn: boolean][] = [
  ['http://localhost:8080/oauth2', 'localhost:8080', true],
  ['http://localhost:8080/oauth2/token', 'localhost:8080', true],
  ['http://localhost:8080/oauth2/', 'localhost:8080', true],
  ['https://localhost:8080/oauth2', 'localhost:8080', true],
  ['https://events.example.com/oauth2', 'events.example.com', true],
  ['https://events.example.com:443/oauth2', 'events.example.com', true],
  ['https://events.example.com/oauth2', 'EVENTS.example.com:443', true],
  ['http://events.example.com/oauth2', 'events.example.com:80', true],
  ['https://events.example.com/switchyard/oauth2', 'events.example.com', true],
  ['http://[::1]:8080/oauth2', '[::1]:8080', true],
  ['https://events.example.com/oauth2', 'events.example.com:8443', false],
  ['https://events.example.com/oauth2', 'example.com', false],
  ['https://events.example.com.evil.example/oauth2', 'events.example.com', false],
  ['https://events.example.com@evil.example/oauth2', 'events.example.com', false],
  ['https://evil.example/oauth2?events.example.com/oauth2', 'events.example.com', false],
  ['https://events.example.com/oauth2#x', 'events.example.com', false],
  ['https://events.example.com/oauth2?x', 'events.example.com', false],
  ['https://events.example.com/oauth2x', 'events.example.com', false],
  ['https://events.example.com/xoauth2', 'events.example.com', false],
  ['https://events.example.com/', 'events.example.com', false],
  ['ftp://events.example.com/oauth2', 'events.example.com', false],
  ['//events.example.com/oauth2', 'events.example.com', false],
  ['events.example.com/oauth2', 'events.example.com', false],
  ['', 'events.example.com', false],
  ['https://events.example.com/oauth2', undefined, false],
  ['https://events.example.com/oauth2', '', false],
  ['https://events.example.com/oauth2', ':', false],
]
for (const [address, host, isOwn] of cases) {
  test(`${address} is ${isOwn ? '' : 'not '}the address of ${host ?? 'no host'}`, () => assert.equal(isAddressOf(address, host), isOwn))
}

test('the address of the service contains only the host of the header', () => {
  assert.equal(addressOf('https', 'Events.example.com:8443'), 'https://events.example.com:8443/oauth2')
  assert.equal(addressOf('http', `user@events.example.com:80/${'x'.repeat(8_000)}?#`), 'http://events.example.com/oauth2')
})
