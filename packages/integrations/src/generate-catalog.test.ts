import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { CatalogEntry } from './catalog.ts'
import { generateCatalog, writeCatalog } from './generate-catalog.ts'

const ID = '5f7dd6d21ad74f3842b1fc47'
let folder: string

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'definitions-'))
})

after(() => {
  rmSync(folder, { recursive: true })
})

test('a definition that cannot be loaded is left out with a warning, and the rest is in the catalogue', () => {
  const definition = (slug: string, more = ''): string =>
    `exports.default = { slug: ${JSON.stringify(slug)}, name: 'A tool', actions: { send: { title: 'Send', description: 'Sends. TODO: Say what.', fields: {} } }, ${more} }`
  const modules = {
    good: definition('good'),
    throws: `throw new Error('no such table\\nat line 2')`,
    'throws-text': `throw 'a text'`,
    'missing-dependency': `require('a-package-that-is-not-installed')`,
    empty: '',
    'slug-is-a-path': definition('../../server/package'),
    'slug-of-the-index': definition('index'),
    'same-slug': definition('good'),
    'broken-condition': definition(
      'broken',
      `authentication: { scheme: 'custom', fields: { a: { type: 'string', required: { conditions: [{ fieldKey: 'b', operator: 'contains', value: 1 }] } } } }`,
    ),
    last: definition('last'),
  }
  for (const [name, code] of Object.entries(modules)) {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'index.js'), code)
  }
  const names = [...Object.keys(modules), 'missing-folder']
  writeFileSync(join(folder, 'index.js'), names.map((name) => `register('${ID}', './${name}');\n`).join(''))

  const { integrations, warnings } = generateCatalog(folder)
  assert.deepEqual(
    integrations.map(({ slug, directory, segmentId }) => [slug, directory, segmentId]),
    [
      ['good', 'good', ID],
      ['last', 'last', ID],
    ],
  )
  assert.equal(integrations[0]?.actions[0]?.description, 'Sends.')
  assert.equal(warnings.length, names.length - 2)
  assert.equal(warnings[0], 'The integration in "throws" is left out of the catalogue because it cannot be loaded: no such table')
  assert.match(
    warnings.join('\n'),
    /"slug-is-a-path".*"\.\.\/\.\.\/server\/package" does not consist of lower-case letters, digits and "-"/,
  )
  assert.match(warnings.join('\n'), /"same-slug".*its slug "good" is used by another one/)

  const written = pathToFileURL(join(folder, 'written/'))
  writeCatalog(integrations, 'stamp of the test', written)
  assert.deepEqual(readdirSync(written).sort(), ['good.json', 'index.json', 'last.json', 'stamp'])
  const index = JSON.parse(readFileSync(new URL('index.json', written), 'utf8')) as CatalogEntry[]
  assert.deepEqual(index[0], {
    slug: 'good',
    name: 'A tool',
    title: 'A tool',
    description: 'Actions: Send.',
    category: 'other',
    keywords: [],
    popularity: null,
    auth: 'none',
    actionCount: 1,
    presetCount: 0,
    batch: false,
    available: true,
    problem: null,
    needs: null,
    requiredSettingCount: 0,
  })
})
