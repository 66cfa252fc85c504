// docs/reference says what the code says: each page is made again and compared, and no error code is left without use.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { REFUSALS } from '@switchyard/protocol'
import { errorsOf, operationsOf, type ReferenceDocument } from '../packages/server/src/docs/reference-document.ts'
import { ERROR_ADVICE } from '../packages/server/src/error-advice.ts'
import { API_ERRORS } from '../packages/server/src/errors.ts'
import { describedApi } from '../scripts/reference/api.ts'
import { REFERENCE_PAGES, writtenText } from '../scripts/reference.ts'

for (const page of REFERENCE_PAGES) {
  test(`${page.path} says what the code says`, async () => {
    const text = await page.render()
    // A type may be undefined; a sentence may not.
    if (page.path.endsWith('.md')) assert.ok(!/undefined|\[object Object\]/.test(text), 'something is missing in it')
    assert.ok(text === writtenText(page), `${page.path} is out of date. Run: node scripts/run.mjs scripts/reference.ts`)
  })
}

/** Given before it is known which operation is asked for. */
const OF_ANY_REQUEST = {
  not_found: 'a path that is not there',
  method_not_allowed: 'a method that a path does not take',
  headers_too_large: 'node:http reads the headers before there is a request',
}

test('every error code is given by an operation that says so, or by any request', () => {
  const document: ReferenceDocument = describedApi()
  const given = new Set([
    ...operationsOf(document).flatMap((operation) => errorsOf(document, operation).flatMap(({ codes }) => codes)),
    ...Object.keys(OF_ANY_REQUEST),
  ])
  const known = [...Object.keys(API_ERRORS), ...Object.keys(REFUSALS)]
  assert.deepEqual(
    known.filter((code) => !given.has(code)),
    [],
    'codes that nothing gives',
  )
})

test('every error code is named by a test, as what a request is refused with', () => {
  const root = join(import.meta.dirname, '..')
  const texts = globSync(['packages/{server,protocol}/src/**/*.test.ts', 'e2e/*.test.ts'], { cwd: root })
    .filter((path) => !path.endsWith('reference.test.ts'))
    .map((path) => readFileSync(join(root, path), 'utf8'))
  const untested = [...Object.keys(API_ERRORS), ...Object.keys(REFUSALS)].filter((code) => {
    const named = new RegExp(`['"\`]${code}['"\`]|${code}[\\\\"]`)
    return !texts.some((text) => named.test(text))
  })
  assert.deepEqual(untested, [])
})

test('every error code has advice, a sentence each', () => {
  for (const code of [...Object.keys(API_ERRORS), ...Object.keys(REFUSALS)]) {
    assert.match((ERROR_ADVICE as Record<string, string>)[code] ?? '', /^[A-Z].*\.$/, code)
  }
})
