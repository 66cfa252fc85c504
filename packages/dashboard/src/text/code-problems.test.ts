import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonProblem, offsetOf, placeAt, placeIn, placeOfPath } from './code-problems.ts'

test('the place is read from a message of the service', () => {
  assert.deepEqual(placeIn('transformation.code line 3, column 7: unexpected token'), { line: 3, column: 7 })
  assert.deepEqual(placeIn('TypeError: cannot read property (line 12)'), { line: 12, column: null })
  assert.deepEqual(placeIn('At column 4: expected a value'), { line: 1, column: 4 })
  assert.equal(placeIn('out of memory'), null)
})

test('an error in JSON has its line and column', () => {
  assert.equal(jsonProblem('{"a": [1, -2.5e3, "\\u00e9", {}, []]}'), null)
  const at = (text: string): unknown[] => {
    const problem = jsonProblem(text)
    return [problem?.line, problem?.column, problem?.message.replace('Not valid JSON: expected ', '')]
  }
  assert.deepEqual(at('{\n  "a": 1,\n  "b": oops\n}'), [3, 8, 'a value.'])
  assert.deepEqual(at('{\n  "a": 1,\n'), [2, 10, 'a name in double quotes.'])
  assert.deepEqual(at('{\n  "a": 1,\n}'), [3, 1, 'a name in double quotes.'])
  assert.deepEqual(at('{\n  "a" 1\n}'), [2, 7, 'a colon.'])
  assert.deepEqual(at('{ "a": [1 2] }'), [1, 11, 'a comma or ].'])
  assert.deepEqual(at('{} {}'), [1, 4, 'the end of the text.'])
  assert.deepEqual(at("{ 'a': 1 }"), [1, 3, 'a name in double quotes or }.'])
  assert.deepEqual(at(''), [1, 1, 'a value.'])
})

test('a path of a mapping leads to the line of its last key', () => {
  const text = '{\n  "id": { "@path": "$.userId" },\n  "text": {\n    "@template": "{{event"\n  }\n}'
  assert.deepEqual(placeOfPath(text, ['text', '@template']), { line: 4, column: 5 })
  assert.deepEqual(placeOfPath(text, ['id']), { line: 2, column: 3 })
  assert.deepEqual(placeOfPath(text, ['missing']), { line: 1, column: 1 })
  assert.deepEqual(placeAt('a\nbc', 3), { line: 2, column: 2 })
  assert.equal(offsetOf('a\nbc', { line: 2, column: 2 }), 3)
})
