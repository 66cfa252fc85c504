import assert from 'node:assert/strict'
import test from 'node:test'
import { HostOutput, withoutSecrets } from './host-output.ts'

test('lines are joined from pieces of each stream, cut, and limited in number', () => {
  let now = 0
  const lines: string[] = []
  const output = new HostOutput(
    () => [],
    (line) => void lines.push(line),
    () => now,
  )
  output.add('stdout', 'one, ')
  output.add('stderr', 'other\n\n')
  output.add('stdout', 'two\nthree')
  output.add('stdout', `\n${'x'.repeat(600)}\n`)
  assert.deepEqual(lines, ['other', 'one, two', 'three', `${'x'.repeat(500)}…`])
  output.add('stdout', 'more\n'.repeat(100))
  assert.equal(lines.length, 20)
  now = 10_001
  output.add('stdout', 'again\n')
  assert.deepEqual(lines.slice(20), ['(84 more lines)', 'again'])
  // A line without an end does not fill the memory, and its end is not taken for a line of its own.
  for (let nth = 0; nth < 100; nth++) output.add('stdout', 'y'.repeat(10_000))
  output.add('stdout', '\nlast\n')
  assert.deepEqual(lines.slice(22), [`${'y'.repeat(500)}…`, 'last'])
})

test('a flood is dropped unread, and then no part of a line is shown', () => {
  let now = 0
  const lines: string[] = []
  const output = new HostOutput(
    () => [{ apiKey: 'secret value' }],
    (line) => void lines.push(line),
    () => now,
  )
  for (let nth = 0; nth < 100; nth++) output.add('stdout', '\n'.repeat(65_536))
  output.add('stdout', 'my key is secret')
  now = 10_001
  output.add('stdout', ' value')
  output.add('stdout', ' of mine\nnext\n')
  output.add('stderr', 'other\n')
  assert.deepEqual(lines, ['(4553616 more characters)', 'next', 'other'])
})

test('secrets are removed before a line is cut, also in other encodings and line by line', () => {
  const secret = 's3cret value/"+'
  const key = 'line one of a key\nline two of a key'
  const settings = [{ apiKey: secret, region: 'us', nested: { list: [{ key }] }, count: 7, surrogate: 'broken \ud800 text' }]
  const shown = (text: string): string => withoutSecrets(text, settings)
  for (const text of [
    secret,
    encodeURIComponent(secret),
    JSON.stringify({ secret }),
    Buffer.from(secret).toString('base64'),
    key,
    'line two of a key',
  ]) {
    assert.doesNotMatch(shown(`before ${text} after`), /s3cret|czNjcmV0|line (one|two)/)
    assert.match(shown(`before ${text} after`), /^before .*\(hidden\).* after$/s)
  }
  assert.equal(shown('us 7 true'), 'us 7 true')
  const lines: string[] = []
  new HostOutput(
    () => settings,
    (line) => void lines.push(line),
  ).add('stderr', `${'x'.repeat(490)}${secret}\n`)
  assert.deepEqual(lines, [`${'x'.repeat(490)}(hidden)`])
})
