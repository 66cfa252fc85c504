import assert from 'node:assert/strict'
import { test } from 'node:test'
import { harmless } from './terminal-text.ts'

test('no text can move the cursor, start a line or change the direction of the following text', () => {
  const rows: [text: string, shown: string][] = [
    ['\x1b[2Jgone', '\\u001b[2Jgone'],
    ['a\nb\r\nc', 'a\\nb\\r\\nc'],
    ['a\u0085b\u009b31mc\u007f', 'a\\u0085b\\u009b31mc\\u007f'],
    ['a\u2028b\u2029c', 'a\\u2028b\\u2029c'],
    ['\u202egnp.exe\u2066\u200f\u061c', '\\u202egnp.exe\\u2066\\u200f\\u061c'],
    ['tab\there', 'tab here'],
    ['Ünïcödé 日本 👩‍💻', 'Ünïcödé 日本 👩‍💻'],
  ]
  for (const [text, shown] of rows) assert.equal(harmless(text), shown)
})
