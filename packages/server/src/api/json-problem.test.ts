import assert from 'node:assert/strict'
import test from 'node:test'
import { bytesProblem, textProblem } from './json-problem.ts'

const said = (text: string): string => textProblem('It', text)

const CASES: [text: string, sentence: string][] = [
  ['', 'It is empty. Send a JSON object.'],
  [' \n', 'It is empty. Send a JSON object.'],
  ["{'userId': 'u'}", `It is not valid JSON: unexpected ' at position 2. JSON uses double quotes (") around names and strings.`],
  [`{"userId": 'u'}`, `It is not valid JSON: unexpected ' at position 12. JSON uses double quotes (") around names and strings.`],
  ['{"a":1,}', 'It is not valid JSON: trailing comma before } at position 8. Remove the comma.'],
  ['[1,\n2,\n]', 'It is not valid JSON: trailing comma before ] at line 3, column 1. Remove the comma.'],
  ['{"a":1', 'It is not valid JSON: it ends too early. It may have been cut off.'],
  ['{"a":"b', 'It is not valid JSON: it ends too early. It may have been cut off.'],
  ['{"a" 1}', 'It is not valid JSON: unexpected 1 at position 6. A colon is missing after the name.'],
  ['{"a":1 "b":2}', 'It is not valid JSON: unexpected " at position 8. A comma or a closing bracket is missing.'],
  ['{"a":True}', 'It is not valid JSON: unexpected T at position 6. A value is missing or is not quoted.'],
  ['{a:1}', 'It is not valid JSON: unexpected a at position 2. Names must be in double quotes.'],
  ['{"a":1} x', 'It is not valid JSON: unexpected text after the end of the value at position 9.'],
  ['{"a":1} // note', 'It is not valid JSON: unexpected text after the end of the value at position 9.'],
  [
    '{"a":"b\nc"}',
    'It is not valid JSON: unescaped control character in a string at position 8. Write a line break as \\n and a tab as \\t.',
  ],
  ['{"a":"\\d"}', 'It is not valid JSON: invalid escape sequence in a string at position 7. Write a backslash as \\\\.'],
  ['userId=u&event=E', 'It is a form (name=value), not JSON. Send a JSON object.'],
]
for (const [text, sentence] of CASES) {
  test(`says what is wrong with ${JSON.stringify(text)}`, () => {
    assert.throws(() => JSON.parse(text))
    assert.equal(said(text), sentence)
  })
}

test('says what is wrong with bytes that are not UTF-8 text', () => {
  assert.match(bytesProblem('It', Buffer.from([0x7b, 0xff, 0x7d])), /not valid UTF-8/)
  assert.match(bytesProblem('It', Buffer.from('\ufeff{}', 'utf16le')), /UTF-16/)
  assert.match(bytesProblem('It', Buffer.from([0x1f, 0x8b, 8])), /Content-Encoding: gzip/)
})

test('an error is found exactly where JSON.parse finds one, for texts with one change', () => {
  const valid = '{"a":[1,-2.5e3,true,null,"x\\u00e9\\n"],"b":{"c":{}},"d":[]}'
  for (let at = 0; at < valid.length; at += 1) {
    for (const other of ['', ',', '"', '}', "'", '1', '\\']) {
      const changed = valid.slice(0, at) + other + valid.slice(at + 1)
      let isValid = true
      try {
        JSON.parse(changed)
      } catch {
        isValid = false
      }
      assert.equal(said(changed) === 'It is not valid JSON.', isValid, changed)
    }
  }
})

test('a large and deep text takes linear time and no stack', () => {
  assert.match(said('['.repeat(500_000)), /ends too early/)
  assert.match(said(`["${'a'.repeat(500_000)}`), /ends too early/)
})

test('a long text is read only up to a limit', () => {
  const long = '1,'.repeat(60_000)
  assert.equal(said(`[${long}x]`), 'It is not valid JSON: the error is after position 100001.')
  assert.equal(said(`[${long}`), 'It is not valid JSON: it ends too early. It may have been cut off.')
  assert.equal(said('['.repeat(500_000)), 'It is not valid JSON: it ends too early. It may have been cut off.')
})
