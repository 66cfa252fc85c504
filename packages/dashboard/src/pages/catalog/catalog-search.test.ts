import assert from 'node:assert/strict'
import { test } from 'node:test'
import { abilitiesText, aboutText, type CatalogEntry, found, problemText } from './catalog-search.ts'

const entry = (name: string, more: Partial<CatalogEntry> = {}): CatalogEntry => ({
  slug: `actions-${name.toLowerCase().replaceAll(' ', '-')}`,
  name,
  description: '',
  auth: 'custom',
  actionCount: 1,
  presetCount: 0,
  batch: false,
  available: true,
  problem: null,
  needs: null,
  requiredSettingCount: 0,
  ...more,
})

const CATALOG = [
  entry('Attentive', { description: 'Send texts, also to Slack users.' }),
  entry('Google Analytics 4', { auth: 'oauth2' }),
  entry('Google Ads', { problem: 'It needs a token.' }),
  entry('Slack', { auth: 'none' }),
  entry('Slackline (Actions)'),
]
const names = (text: string, auth = ''): string[] => found(CATALOG, text, auth).map(({ name }) => name)

test('names that start with the text come first, then other names, then descriptions; those that do not work come last', () => {
  assert.deepEqual(names('slack'), ['Slack', 'Slackline (Actions)', 'Attentive'])
  assert.deepEqual(names('google'), ['Google Analytics 4', 'Google Ads'])
  assert.deepEqual(names('  Analytics google '), ['Google Analytics 4'])
  assert.deepEqual(names('nothing like it'), [])
})

test('without a text, everything is found, and a kind of authentication narrows it', () => {
  assert.equal(names('').length, CATALOG.length)
  assert.deepEqual(names('', 'oauth2'), ['Google Analytics 4'])
})

test('a card says what an integration can do, also if the definition has no description', () => {
  assert.equal(abilitiesText(entry('A', { actionCount: 3, presetCount: 2, batch: true })), '3 actions · 2 presets · sends in batches')
  assert.equal(abilitiesText(entry('A')), '1 action')
  assert.equal(abilitiesText(entry('A', { requiredSettingCount: 2 })), '2 required settings · 1 action')
  assert.equal(problemText(entry('A')), null)
  assert.equal(problemText(entry('A', { problem: 'It needs a token.' })), 'Does not work with Switchyard. It needs a token.')
  assert.equal(aboutText(entry('Slackline (Actions)')), 'Sends your events to Slackline.')
  assert.equal(aboutText(entry('A', { description: 'See [the docs](https://a.example).' })), 'See the docs.')
})
