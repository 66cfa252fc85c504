// docs/reference is up to date: each page is generated again and compared. Every error code is used, tested and documented.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { REFUSALS } from '@switchyard/protocol'
import { HTTP_API } from '../../docs/.vitepress/contents.ts'
import { ERROR_ADVICE } from '../../packages/server/src/api/error-advice.ts'
import { SETTINGS } from '../../packages/server/src/config.ts'
import { API_ERRORS } from '../../packages/server/src/errors.ts'
import { describedApi } from '../../scripts/reference/api.ts'
import { curlOf } from '../../scripts/reference/curl.ts'
import { httpPages, nameOf } from '../../scripts/reference/http.ts'
import { integrationPages } from '../../scripts/reference/integrations.ts'
import { errorsOf, type OpenApi, operationsOf } from '../../scripts/reference/openapi.ts'
import { REFERENCE_PAGES, writtenIntegrations, writtenText } from '../../scripts/reference.ts'

for (const page of REFERENCE_PAGES) {
  test(`${page.path} is up to date`, async () => {
    const text = await page.render()
    // The word undefined is valid in TypeScript types, but not in prose.
    if (page.path.endsWith('.md')) assert.ok(!/undefined|\[object Object\]/.test(text), 'a value is missing in the text')
    assert.ok(text === writtenText(page), `${page.path} is out of date. Run: node scripts/run.mjs scripts/reference.ts`)
  })
}

test('the pages of the integrations are up to date, and there is one for each integration of the catalogue', async () => {
  const pages = await integrationPages()
  const stale = pages.filter((page) => page.text !== writtenText(page)).map(({ path }) => path)
  assert.deepEqual(stale, [], 'out of date. Run: node scripts/run.mjs scripts/reference.ts')
  assert.deepEqual(new Set(writtenIntegrations()), new Set(pages.map(({ path }) => path)))
  assert.ok(pages.length > 200, `only ${pages.length} pages`)
})

test('the HTTP API has one page for each tag of its description, in the folder and in the table of contents', () => {
  const pages = httpPages().map(({ path, title }) => [path.replace(/^docs\/reference\/|\.md$/g, ''), title])
  assert.deepEqual(HTTP_API.pages, pages)
  const files = globSync('http{.md,/*.md}', { cwd: join(import.meta.dirname, '..', '..', 'docs', 'reference') })
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
  const written = (path: string): string => writtenText({ path }) ?? ''
  for (const code of [...Object.keys(API_ERRORS), ...Object.keys(REFUSALS)])
    assert.equal(written('docs/reference/errors.md').split(`<a id="${code}"></a>`).length, 2, code)
  for (const { variable } of Object.values(SETTINGS))
    assert.ok(written('docs/reference/config.md').includes(`| \`${variable}\` |`), variable)
})

test('the example command is quoted for the shell', () => {
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

/** Errors that are returned before a request is matched to an operation. */
const OF_ANY_REQUEST = {
  not_found: 'an unknown path',
  method_not_allowed: 'a method that the path does not support',
  headers_too_large: 'node:http rejects the headers before it emits a request',
}

test('every error code is documented for an operation, or can be returned for any request', () => {
  const document: OpenApi = describedApi()
  const documented = new Set([
    ...operationsOf(document).flatMap((operation) => errorsOf(document, operation).flatMap(({ codes }) => codes)),
    ...Object.keys(OF_ANY_REQUEST),
  ])
  const known = [...Object.keys(API_ERRORS), ...Object.keys(REFUSALS)]
  assert.deepEqual(
    known.filter((code) => !documented.has(code)),
    [],
    'error codes that no operation documents',
  )
})

test('every error code is mentioned in a test', () => {
  const root = join(import.meta.dirname, '..', '..')
  const texts = globSync(['packages/{server,protocol}/src/**/*.test.ts', 'e2e/**/*.test.ts'], { cwd: root })
    .filter((path) => !path.endsWith('reference.test.ts'))
    .map((path) => readFileSync(join(root, path), 'utf8'))
  const untested = [...Object.keys(API_ERRORS), ...Object.keys(REFUSALS)].filter((code) => {
    const named = new RegExp(`['"\`]${code}['"\`]|${code}[\\\\"]`)
    return !texts.some((text) => named.test(text))
  })
  assert.deepEqual(untested, [])
})

test('every error code has advice, written as a sentence', () => {
  for (const code of [...Object.keys(API_ERRORS), ...Object.keys(REFUSALS)]) {
    assert.match((ERROR_ADVICE as Record<string, string>)[code] ?? '', /^[A-Z].*\.$/, code)
  }
})
