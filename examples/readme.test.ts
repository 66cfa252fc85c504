import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

test('the README lists every example and no other', () => {
  const listed = [...readFileSync(join(import.meta.dirname, 'README.md'), 'utf8').matchAll(/^\| \[(\S+)\]\(\1\) /gm)].map(
    ([, name]) => name,
  )
  const present = readdirSync(import.meta.dirname, { withFileTypes: true })
    .filter((entry) => (entry.isDirectory() ? !['testing', 'node_modules'].includes(entry.name) : /(?<!\.test)\.ts$/.test(entry.name)))
    .map(({ name }) => name)
  assert.deepEqual(new Set(listed), new Set(present))
})
