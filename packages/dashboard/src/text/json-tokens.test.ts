import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonTokens } from './json-tokens.ts'

test('names, strings, numbers and keywords are distinguished, and the tokens add up to the text', () => {
  const text = JSON.stringify(
    { name: 'a "quoted": \\ one', n: -1.5e-7, yes: true, no: null, list: [1, 'true', '12', ''], '<script>': '</script>' },
    null,
    2,
  )
  const tokens = jsonTokens(text)
  assert.equal(tokens.map(([, part]) => part).join(''), text)
  assert.deepEqual(
    tokens.filter(([kind]) => kind === 'name').map(([, part]) => part),
    ['"name"', '"n"', '"yes"', '"no"', '"list"', '"<script>"'],
  )
  assert.deepEqual(
    tokens.filter(([kind]) => kind === 'number').map(([, part]) => part),
    ['-1.5e-7', '1'],
  )
  assert.deepEqual(
    tokens.filter(([kind]) => kind === 'word').map(([, part]) => part),
    ['true', 'null'],
  )
  assert.deepEqual(
    tokens.filter(([kind]) => kind === 'string').map(([, part]) => part),
    [JSON.stringify('a "quoted": \\ one'), '"true"', '"12"', '""', '"</script>"'],
  )
})

test('500 KB of text is split quickly', () => {
  const text = JSON.stringify(Array.from({ length: 20_000 }, (_, at) => ({ at, text: '\\"'.repeat(5) })))
  const started = performance.now()
  assert.equal(
    jsonTokens(text)
      .map(([, part]) => part)
      .join('').length,
    text.length,
  )
  assert.ok(performance.now() - started < 2_000)
})
