// The table of purposes and the definitions have the same integrations, and each has a sentence that a person can read.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCatalog } from './catalog.ts'
import { keywordsOf, PURPOSES, popularityOf } from './purposes.ts'

test('every integration has a purpose, and no purpose is left of one that is gone', async () => {
  const slugs = (await readCatalog()).map(({ slug }) => slug)
  assert.deepEqual(
    slugs.filter((slug) => !PURPOSES.has(slug)),
    [],
  )
  assert.deepEqual(
    [...PURPOSES.keys()].filter((slug) => !slugs.includes(slug)),
    [],
  )
})

test('each purpose is one short sentence about the tool, not about Segment', () => {
  for (const [slug, [, about]] of PURPOSES) {
    assert.match(about, /^[A-Z][^\n]{10,118}\.$/, slug)
    assert.doesNotMatch(about, /Segment (events|analytics|data|users)/, slug)
  }
})

test('popular integrations exist, work, and have different ranks; keywords are in lower case, as searches are compared', async () => {
  const popular = (await readCatalog()).filter(({ popularity }) => popularity !== null)
  assert.deepEqual(
    popular.map(({ popularity }) => popularity).sort((one, other) => (one as number) - (other as number)),
    popular.map((_, index) => index + 1),
  )
  for (const { slug, problem, needs } of popular) assert.deepEqual([problem, needs], [null, null], slug)
  assert.equal(popularityOf('actions-amplitude'), 1)
  assert.equal(popularityOf('actions-noop'), null)
  for (const { keywords, category } of await readCatalog()) {
    assert.deepEqual(keywords, keywordsOf(category))
    assert.deepEqual(
      keywords,
      keywords.map((word) => word.toLowerCase()),
    )
  }
})
