// The record of actions that work in the tests: it contains only actions of the catalogue, and a test fails if one of them no longer works.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readCatalog, readIntegration } from '@switchyard/integrations/catalog'
import { countsOf } from './counts.ts'
import { checkSeen, readSeen } from './seen-actions.ts'

test('every action in the record exists', async () => {
  const seen = Object.entries(readSeen())
  assert.ok(seen.length > 0)
  for (const [slug, byAgainst] of seen) {
    const actions = new Set((await readIntegration(slug))?.actions.map((action) => action.slug))
    const unknown = Object.values(byAgainst)
      .flat()
      .filter((action) => !actions.has(action))
    assert.deepEqual(unknown, [], slug)
  }
})

test('an action that is recorded and no longer seen is an error; a new one is not', () => {
  checkSeen('published', new Map([['actions-slack', ['postToChannel', 'anotherAction']]]))
  assert.throws(() => checkSeen('published', new Map([['actions-slack', []]])), /no longer seen to work/)
})

test('every integration that counts as working was seen to send, and these are at least 200', async () => {
  const seen = readSeen()
  const working = (await readCatalog()).filter(({ problem }) => problem === null)
  assert.deepEqual(
    working.map(({ slug }) => slug).filter((slug) => !Object.hasOwn(seen, slug)),
    [],
  )
  assert.ok(working.length >= 200, `${working.length}`)
})

test('the documentation and the dashboard repeat the numbers of npm run coverage:integrations', async () => {
  const { ordinary, working, all } = countsOf(await readCatalog())
  const root = join(import.meta.dirname, '..', '..', '..')
  const files = [
    'README.md',
    ...globSync('docs/{*.md,guide/*.md,operations/*.md}', { cwd: root }),
    'packages/dashboard/src/pages/catalog/catalog.tsx',
  ]
  const numbers = files.flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/(?<![\d+])(\d{3}) (?:of Segment's own )?(?:tools|integrations)\b/g)].map(
      ([text, number]) => ({ file, text, number: Number(number) }),
    ),
  )
  assert.ok(numbers.length >= 10, `${numbers.length} places`)
  assert.deepEqual(
    numbers.filter(({ number }) => ![ordinary, working, all].includes(number)),
    [],
  )
})
