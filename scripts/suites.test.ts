// Which tests are in which suite, and which tests a change affects.

import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { affectedTests } from './affected-tests.ts'
import { isQuick, LISTED, LONGEST, TEST_FILES } from './quick-suite.ts'

const root = join(import.meta.dirname, '..')
const tests = globSync(TEST_FILES, { cwd: root })

test('every file that the quick suite or the order of the tests names exists', () => {
  assert.deepEqual(
    [...LISTED, ...LONGEST].filter((file) => !tests.includes(file)),
    [],
  )
  assert.equal(new Set(LISTED).size, LISTED.length)
})

test('the quick suite has the main journeys, the conformance of both stores, a kill and one pass through the dashboard', () => {
  for (const file of [
    'e2e/clients/clients.test.ts',
    'e2e/dashboard/journeys.test.ts',
    'e2e/operations/crash.test.ts',
    'e2e/structure.test.ts',
    'packages/server/src/store/postgres/postgres.test.ts',
    'packages/server/src/store/sqlite/sqlite.test.ts',
  ])
    assert.ok(isQuick(file), file)
  const quick = tests.filter(isQuick)
  assert.ok(quick.length > tests.length / 2 && quick.length < tests.length, `${quick.length} of ${tests.length}`)
})

const affects: [changed: string, test: string][] = [
  ['packages/server/src/store/conformance/reading.ts', 'packages/server/src/store/sqlite/sqlite.test.ts'],
  // Loaded as a thread, not imported.
  ['packages/server/src/delivery/sender/sender-thread.ts', 'packages/server/src/delivery/sender-threads.test.ts'],
  // Chosen by the platform.
  ['packages/node/src/platform/web.ts', 'e2e/clients/web-platform.test.ts'],
  ['packages/dashboard/src/style.css', 'e2e/dashboard/journeys.test.ts'],
  // Read from a folder that the test names, or by a pattern.
  ['e2e/store/fixtures/schema-1.json', 'e2e/store/upgrade.test.ts'],
  ['docs/guide/alerts.md', 'e2e/documentation/documentation.test.ts'],
]
for (const [changed, expected] of affects) {
  test(`a change of ${changed} affects ${expected}, but not all tests`, () => {
    const { tests: affected, untraced } = affectedTests(root, [changed], tests)
    assert.ok(affected.includes(expected), affected.join('\n'))
    assert.ok(affected.length < tests.length / 2, `${affected.length} of ${tests.length}`)
    assert.deepEqual(untraced, [])
  })
}

test('a change of the dependencies affects all tests, no change affects none, and a file that no test uses is reported', () => {
  assert.equal(affectedTests(root, ['package-lock.json'], tests).tests.length, tests.length)
  assert.deepEqual(affectedTests(root, [], tests), { tests: [], untraced: [] })
  assert.deepEqual(affectedTests(root, ['LICENSE.old'], tests), { tests: [], untraced: ['LICENSE.old'] })
})
