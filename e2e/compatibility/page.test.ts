// docs/guide/compatibility.md contains exactly the results of the tests in this folder: the page is generated again and compared, and every group
// that it lists has a test file.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { compatibilityPage, GROUPS, writtenPage } from './page.ts'

test('docs/guide/compatibility.md is up to date', () => {
  const text = compatibilityPage()
  assert.doesNotMatch(text, /undefined|\[object Object\]/)
  assert.ok(text === writtenPage(), 'docs/guide/compatibility.md is out of date. Run: node e2e/compatibility/page.ts --write')
})

for (const [name, { testFile, features, clients }] of Object.entries(GROUPS)) {
  test(`everything that ${name} lists is run by ${testFile}`, () => {
    const text = readFileSync(join(import.meta.dirname, testFile), 'utf8')
    assert.match(text, new RegExp(`^tryOut\\(${name}, `, 'm'))
    for (const { installedAs, tried } of clients) {
      assert.deepEqual(Object.keys(tried).sort(), Object.keys(features).sort(), installedAs)
      for (const [feature, { result, note, attempt }] of Object.entries(tried)) {
        const row = `${installedAs}, ${feature}`
        assert.equal(typeof attempt, 'function', row)
        if (note === undefined) assert.equal(result, 'works', `${row} does not say what differs`)
        else assert.match(note, /^\S[^\n]*\.$/, row)
      }
    }
  })
}
