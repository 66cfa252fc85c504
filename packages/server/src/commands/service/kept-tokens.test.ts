// Tests the file of `switchyard login`: where it is, who can read it, and what happens to a file that others can read or that is damaged.

import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { credentialsPath, keepToken, keptToken } from './kept-tokens.ts'

const URL_A = 'http://127.0.0.1:8080'
const URL_B = 'https://analytics.example.com'

function environment(t: TestContext): { XDG_CONFIG_HOME: string } {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-kept-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return { XDG_CONFIG_HOME: join(folder, 'not', 'there', 'yet') }
}

test('the file is in the configuration folder of the platform, and XDG_CONFIG_HOME counts on all of them', () => {
  const HOME = '/home/ada'
  assert.equal(credentialsPath({ HOME }, 'linux'), '/home/ada/.config/switchyard/credentials.json')
  assert.equal(credentialsPath({ HOME }, 'darwin'), '/home/ada/Library/Application Support/switchyard/credentials.json')
  for (const platform of ['linux', 'darwin'] as const)
    assert.equal(credentialsPath({ HOME, XDG_CONFIG_HOME: '/xdg' }, platform), '/xdg/switchyard/credentials.json')
  // As the specification of XDG demands.
  assert.equal(credentialsPath({ HOME, XDG_CONFIG_HOME: 'relative' }, 'linux'), '/home/ada/.config/switchyard/credentials.json')
})

test('tokens are kept per address, replaced and removed, and nobody else can read the file', (t) => {
  const env = environment(t)
  const path = credentialsPath(env)
  assert.equal(keptToken(env, URL_A), undefined)
  keepToken(env, URL_A, { id: 'tok_a', token: 'a' })
  keepToken(env, URL_B, { id: 'tok_b', token: 'b' })
  keepToken(env, URL_A, { id: 'tok_c', token: 'c' })
  assert.deepEqual(keptToken(env, URL_A), { id: 'tok_c', token: 'c' })
  assert.deepEqual(keptToken(env, URL_B), { id: 'tok_b', token: 'b' })
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.equal(statSync(dirname(path)).mode & 0o777, 0o700)
  assert.deepEqual(readdirSync(dirname(path)), ['credentials.json'])

  keepToken(env, URL_A, null)
  assert.equal(keptToken(env, URL_A), undefined)
  assert.doesNotMatch(readFileSync(path, 'utf8'), /tok_c/)
  keepToken(env, URL_B, null)
  assert.deepEqual(readdirSync(dirname(path)), [])
})

test('a file that other users can read is refused, with the command that corrects it', (t) => {
  const env = environment(t)
  keepToken(env, URL_A, { id: 'tok_a', token: 'hush' })
  chmodSync(credentialsPath(env), 0o640)
  assert.throws(
    () => keptToken(env, URL_A),
    (error: Error) => /Run: chmod 600 '.*credentials\.json'/.test(error.message) && !/hush/.test(error.message),
  )
})

test('a damaged file is refused with what to do, and entries of another form are ignored', (t) => {
  const env = environment(t)
  keepToken(env, URL_A, { id: 'tok_a', token: 'a' })
  const path = credentialsPath(env)
  for (const text of ['', '{', '[]', '{"tokens":[]}', '{"tokens":null}', 'null', 'x'.repeat(1_000_001)]) {
    writeFileSync(path, text)
    assert.throws(() => keptToken(env, URL_A), /is not a file of `switchyard login`. Remove it, and log in again\./)
  }
  writeFileSync(path, `{"tokens":{"${URL_A}":{"id":1,"token":"a"},"${URL_B}":{"id":"i","token":"a b"},"__proto__":{"id":"i","token":"t"}}}`)
  assert.equal(keptToken(env, URL_A), undefined)
  assert.equal(keptToken(env, URL_B), undefined)
  assert.equal(({} as { token?: string }).token, undefined)
})
