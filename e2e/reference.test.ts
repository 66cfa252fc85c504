// docs/reference says what the code says: each page is made again and compared, and no error code is left without use.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { REFUSALS } from '@switchyard/protocol'
import { HTTP_API } from '../docs/.vitepress/contents.ts'
import { ERROR_ADVICE } from '../packages/server/src/api/error-advice.ts'
import { SETTINGS } from '../packages/server/src/config.ts'
import { API_ERRORS } from '../packages/server/src/errors.ts'
import { describedApi } from '../scripts/reference/api.ts'
import { curlOf } from '../scripts/reference/curl.ts'
import { httpPages, nameOf } from '../scripts/reference/http.ts'
import { errorsOf, type OpenApi, operationsOf } from '../scripts/reference/openapi.ts'
import { REFERENCE_PAGES, writtenText } from '../scripts/reference.ts'

for (const page of REFERENCE_PAGES) {
  test(`${page.path} says what the code says`, async () => {
    const text = await page.render()
    // A type may be undefined; a sentence may not.
    if (page.path.endsWith('.md')) assert.ok(!/undefined|\[object Object\]/.test(text), 'something is missing in it')
    assert.ok(text === writtenText(page), `${page.path} is out of date. Run: node scripts/run.mjs scripts/reference.ts`)
  })
}

test('the HTTP API has one page for each tag of its description, in the folder and in the table of contents', () => {
  const pages = httpPages().map(({ path, title }) => [path.replace(/^docs\/reference\/|\.md$/g, ''), title])
  assert.deepEqual(HTTP_API.pages, pages)
  const files = globSync('http{.md,/*.md}', { cwd: join(import.meta.dirname, '..', 'docs', 'reference') })
  assert.deepEqual(new Set(files.map((file) => file.replaceAll('\\', '/').replace(/\.md$/, ''))), new Set(pages.map(([name]) => name)))
})

test('every operation is on exactly one page of the HTTP API, with its command; the pages of errors and settings list every code and setting', () => {
  const [overview = '', ...texts] = httpPages().map((page) => page.render())
  for (const operation of operationsOf(describedApi())) {
    const name = nameOf(operation)
    const isAlias = operation['x-alias-of'] !== undefined
    const place = isAlias ? `| \`${name}\` |` : `\n## \`${name}\`\n`
    assert.equal(texts.filter((text) => text.includes(place)).length, 1, name)
    assert.equal(overview.includes(`[\`${name}\`]`), !isAlias, name)
    if (!isAlias)
      assert.ok(
        texts.some((text) => text.includes(`\`\`\`sh\n${curlOf(operation)}\n`)),
        name,
      )
  }
  const written = (path: string): string => writtenText({ path, render: () => '' }) ?? ''
  for (const code of [...Object.keys(API_ERRORS), ...Object.keys(REFUSALS)])
    assert.equal(written('docs/reference/errors.md').split(`<a id="${code}"></a>`).length, 2, code)
  for (const { variable } of Object.values(SETTINGS))
    assert.ok(written('docs/reference/config.md').includes(`| \`${variable}\` |`), variable)
})

test('a command can be pasted into a shell whatever its example holds', () => {
  const command = curlOf({
    method: 'post',
    path: '/things/{id}',
    operationId: 'postThing',
    tags: ['Things'],
    summary: '',
    security: [{ controlToken: [] }],
    parameters: [{ name: 'id', in: 'path', required: true, description: '', schema: {}, example: 'THING_ID' }],
    requestBody: { required: true, content: { 'application/json': { example: { it: "isn't" } } } },
    responses: {},
  })
  assert.equal(
    command,
    [
      `curl "$SWITCHYARD_URL/things/THING_ID"`,
      `-H "Authorization: Bearer $SWITCHYARD_TOKEN"`,
      `-H 'Content-Type: application/json'`,
      `-d '{"it":"isn'\\''t"}'`,
    ].join(' \\\n  '),
  )
})

/** Given before it is known which operation is asked for. */
const OF_ANY_REQUEST = {
  not_found: 'a path that is not there',
  method_not_allowed: 'a method that a path does not take',
  headers_too_large: 'node:http reads the headers before there is a request',
}

test('every error code is given by an operation that says so, or by any request', () => {
  const document: OpenApi = describedApi()
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
