import assert from 'node:assert/strict'
import { test } from 'node:test'
import { csvOf } from './result-csv.ts'

test('cells are quoted where they must be, and none is a formula', () => {
  const columns = ['a', 'b, c'].map((name) => ({ name, type: 'VARCHAR' }))
  const rows = [
    [null, 'say "hi"'],
    [-1.5, '-9007199254740993'],
    [true, '=HYPERLINK("x")'],
    [{ x: [1] }, 'line\nbreak'],
    ['-2+3', '@sum'],
  ]
  assert.deepEqual(csvOf({ columns, rows }).split('\r\n'), [
    'a,"b, c"',
    ',"say ""hi"""',
    '-1.5,-9007199254740993',
    `true,"'=HYPERLINK(""x"")"`,
    '"{""x"":[1]}","line\nbreak"',
    "'-2+3,'@sum",
    '',
  ])
})
