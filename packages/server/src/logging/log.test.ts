import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { createLog } from './log.ts'

test('on a terminal, untrusted text in an entry can neither forge a line nor control the terminal', () => {
  const stream = Object.assign(new PassThrough(), { isTTY: true }) as unknown as NodeJS.WriteStream
  const log = createLog('info', { stream })
  const hostile = 'a\n12:00:00.000 error forged\u0085next\u009b2J\u202eabc\u2028d'
  log.warn({ reason: hostile, [hostile]: 1 }, hostile)
  const text = String(stream.read())
  assert.equal(text.split(/[\n\u0085\u2028]/).length, 2, 'one line')
  // Our own colours are the only escape sequences.
  assert.doesNotMatch(stripVTControlCharacters(text).trimEnd(), /[\p{Cc}\u202e\u2028]/u)
  assert.match(text, /forged\\u0085next\\u009b2J\\u202eabc\\u2028d/)
})
