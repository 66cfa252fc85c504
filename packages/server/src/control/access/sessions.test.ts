import assert from 'node:assert/strict'
import test from 'node:test'
import { Sessions, sessionCookie, sessionsOfCookies } from './sessions.ts'

const NOW_MS = 1_800_000_000_000
const session = { tokenId: 'tok_1', expiresAtMs: NOW_MS + 1_000 }
const hashOf = (id: string): string | undefined => (id === 'tok_1' ? 'hash-1' : undefined)

test('a session is valid for its token until it expires', () => {
  const sessions = new Sessions('key')
  const text = sessions.issue(session, 'hash-1')
  assert.deepEqual(sessions.open(text, hashOf, NOW_MS), session)
  assert.equal(sessions.open(text, hashOf, NOW_MS + 1_000), null)
})

test('a session ends when its token is revoked or changed, and when the key changes', () => {
  const text = new Sessions('key').issue(session, 'hash-1')
  assert.equal(
    new Sessions('key').open(text, () => undefined, NOW_MS),
    null,
  )
  assert.equal(
    new Sessions('key').open(text, () => 'hash-2', NOW_MS),
    null,
  )
  assert.equal(new Sessions('other').open(text, hashOf, NOW_MS), null)
})

test('altered and made-up sessions are rejected', () => {
  const sessions = new Sessions('key')
  const text = sessions.issue(session, 'hash-1')
  const [content, signature] = text.split('.') as [string, string]
  const made = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const later = made(['tok_1', NOW_MS + 9e9])
  for (const bad of [
    '',
    '.',
    content,
    `${content}.`,
    `${content}.${signature.slice(1)}`,
    `${content}.${signature}x`,
    `${content}.${Buffer.alloc(32).toString('base64url')}`,
    `${later}.${signature}`,
    `${made(['tok_2', NOW_MS + 9e9])}.${signature}`,
    `${made(null)}.${signature}`,
    `${made({ tokenId: 'tok_1' })}.${signature}`,
    `${made(['tok_1', '9e15'])}.${signature}`,
    `${made([{ toString: 'tok_1' }, 1])}.${signature}`,
    `bm90IGpzb24.${signature}`,
    `${text}.${signature}`,
    'x'.repeat(10_000),
  ]) {
    assert.equal(sessions.open(bad, hashOf, NOW_MS), null, bad.slice(0, 80))
  }
})

test('the cookie is limited to this host and hidden from scripts and other sites', () => {
  assert.equal(sessionCookie('x', 60_000, false), 'switchyard_session=x; Path=/; HttpOnly; SameSite=Strict; Max-Age=60')
  assert.equal(sessionCookie('x', 60_000, true), '__Host-switchyard_session=x; Path=/; HttpOnly; SameSite=Strict; Max-Age=60; Secure')
})

test('the cookie is found among others, and only under the name for http or https', () => {
  assert.deepEqual(sessionsOfCookies('a=b; switchyard_session=x; c=d', false), ['x'])
  assert.deepEqual(sessionsOfCookies('xswitchyard_session=y;switchyard_session=x', false), ['x'])
  assert.deepEqual(sessionsOfCookies('switchyard_session=x', true), [])
  assert.deepEqual(sessionsOfCookies('__Host-switchyard_session=x', true), ['x'])
  assert.deepEqual(sessionsOfCookies(undefined, false), [])
  assert.deepEqual(sessionsOfCookies('switchyard_session', false), [])
})
