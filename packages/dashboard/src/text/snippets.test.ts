import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { isHiddenKey, isLoopback, maskedKey, SNIPPET_KINDS, snippetNote, snippetOf } from './snippets.ts'

const SOURCE = { origin: 'https://events.example.com', writeKey: 'Ab.c_d~e-f0123456789' }

/** The arguments that a shell passes to curl, which is replaced by printf here. */
function argumentsOf(command: string): string[] {
  return execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }; ACCESS_TOKEN=token\n${command}`], { encoding: 'utf8' })
    .split('\0')
    .slice(0, -1)
}

test('curl is a single shell command with the key and a JSON body', () => {
  const given = argumentsOf(snippetOf('curl', SOURCE))
  assert.equal(given[0], 'https://events.example.com/v1/track')
  assert.equal(given[given.indexOf('--user') + 1], `${SOURCE.writeKey}:`)
  assert.equal(JSON.parse(given[given.indexOf('--data') + 1] as string).userId, 'u-1')
})

test('curl with OAuth sends the token, and the key in the body', () => {
  const given = argumentsOf(snippetOf('curl', { ...SOURCE, requireOAuth: true }))
  assert.ok(given.includes('Authorization: Bearer token'))
  assert.ok(!given.includes('--user'))
  assert.equal(JSON.parse(given[given.indexOf('--data') + 1] as string).writeKey, SOURCE.writeKey)
})

test('the code for a browser runs and sends the key', () => {
  const calls: unknown[][] = []
  runInNewContext(snippetOf('browser', SOURCE), { fetch: (...given: unknown[]) => calls.push(given) })
  const [url, { body }] = calls[0] as [string, { body: string }]
  assert.equal(url, 'https://events.example.com/v1/track')
  assert.equal(JSON.parse(body).writeKey, SOURCE.writeKey)
})

test('each kind contains the key and the URL, and has a note', () => {
  for (const kind of SNIPPET_KINDS) {
    for (const requireOAuth of [false, true]) {
      const text = snippetOf(kind, { ...SOURCE, requireOAuth })
      assert.ok(text.includes(SOURCE.writeKey) && text.includes(SOURCE.origin), kind)
      assert.notEqual(snippetNote(kind, { requireOAuth }), '')
    }
  }
})

test('a masked key shows little, and a short key nothing', () => {
  assert.equal(maskedKey('abcdefghijklmnopqrst'), 'abcd••••••••qrst')
  assert.ok(!maskedKey('short').includes('s'))
  assert.deepEqual(['…qrst', 'abcdefghijklmnopqrst'].map(isHiddenKey), [true, false])
})

test('which host names only this machine can reach', () => {
  assert.deepEqual(['localhost', '127.0.0.1', '[::1]', 'a.localhost', '10.0.0.1', 'example.com', '127.example.com'].map(isLoopback), [
    true,
    true,
    true,
    true,
    false,
    false,
    false,
  ])
})
