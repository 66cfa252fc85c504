import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ADVISORY_LOCKS } from './advisory-locks.ts'

/** The lock of a node, whose number is its holder id. */
const NODE_LOCK = 'pg_try_advisory_lock($2)'
const SOURCE = join(import.meta.dirname, '..', '..', '..')

test('every advisory lock has a different number', () => {
  const numbers = Object.values(ADVISORY_LOCKS)
  assert.equal(new Set(numbers).size, numbers.length)
  for (const number of numbers) assert.match(number, /^\d+$/)
})

test('advisory locks are taken only with numbers from that table', () => {
  const files = globSync('**/*.ts', { cwd: SOURCE }).filter((file) => !file.endsWith('.test.ts'))
  const taking = files.filter((file) => /pg_(try_)?advisory_/.test(readFileSync(join(SOURCE, file), 'utf8')))
  assert.ok(taking.length > 0)
  for (const file of taking) {
    const text = readFileSync(join(SOURCE, file), 'utf8').replace(NODE_LOCK, '')
    for (const [call] of text.matchAll(/pg_(?:try_)?advisory_\w+\([^)]*\)/g)) {
      assert.match(call, /\((\$1|\$\{ADVISORY_LOCKS\.\w+\})\)$/, `${file}: ${call}`)
    }
    const calls = text.match(/pg_(?:try_)?advisory_\w+\(/g)?.length
    assert.equal(
      text.match(/ADVISORY_LOCKS\.\w+/g)?.length,
      calls,
      `${file} takes an advisory lock whose number is not from advisory-locks.ts`,
    )
  }
})
