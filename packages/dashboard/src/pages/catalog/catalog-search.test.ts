import assert from 'node:assert/strict'
import { test } from 'node:test'
import { abilitiesText, aboutText, type CatalogEntry, countText, found, problemText } from './catalog-search.ts'

const entry = (name: string, more: Partial<CatalogEntry> = {}): CatalogEntry => ({
  slug: `actions-${name.toLowerCase().replaceAll(' ', '-')}`,
  name: `Actions ${name}`,
  title: name,
  description: '',
  category: 'other',
  keywords: [],
  popularity: null,
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
  entry('Slackline'),
]
const names = (text: string, auth = ''): string[] => found(CATALOG, { text, auth, category: '' }).map(({ title }) => title)

test('names that start with the text come first, then other names, then descriptions; those that do not work come last', () => {
  assert.deepEqual(names('slack'), ['Slack', 'Slackline', 'Attentive'])
  assert.deepEqual(names('google'), ['Google Analytics 4', 'Google Ads'])
  assert.deepEqual(names('  Analytics google '), ['Google Analytics 4'])
  assert.deepEqual(names('nothing like it'), [])
})

test('without a text, everything is found, and a kind of authentication narrows it', () => {
  assert.equal(names('').length, CATALOG.length)
  assert.deepEqual(names('', 'oauth2'), ['Google Analytics 4'])
})

test('popular ones come first, and a search for a purpose finds the tools of a category', () => {
  const catalog = [
    entry('Aampe', { category: 'messaging', keywords: ['email'] }),
    entry('Braze', { category: 'messaging', keywords: ['email'], popularity: 4 }),
    entry('Mixpanel', { category: 'analytics', popularity: 2 }),
    entry('Broken', { problem: 'It needs a token.', popularity: 1 }),
  ]
  const search = (text: string, category = ''): string[] => found(catalog, { text, auth: '', category }).map(({ title }) => title)
  assert.deepEqual(search(''), ['Mixpanel', 'Braze', 'Aampe', 'Broken'])
  assert.deepEqual(search('email'), ['Braze', 'Aampe'])
  assert.deepEqual(search('SMS and push'), ['Braze', 'Aampe'])
  assert.deepEqual(search('', 'analytics'), ['Mixpanel'])
})

test('the count says how many work, and how many others there are', () => {
  const audiences = entry('Lists', { needs: 'It needs audiences.' })
  assert.equal(
    countText([...CATALOG, audiences], 6),
    '4 integrations. 1 more needs messages that say who is in an audience. 1 does not work and is listed last.',
  )
  assert.equal(countText(CATALOG, 1), '1 integration found')
})

test('a card says what an integration can do, also if the definition has no description', () => {
  assert.equal(abilitiesText(entry('A', { actionCount: 3, presetCount: 2, batch: true })), '3 actions · 2 presets · sends in batches')
  assert.equal(abilitiesText(entry('A')), '1 action')
  assert.equal(abilitiesText(entry('A', { requiredSettingCount: 2 })), '2 required settings · 1 action')
  assert.equal(problemText(entry('A')), null)
  assert.equal(problemText(entry('A', { problem: 'It needs a token.' })), 'Does not work with Switchyard. It needs a token.')
  assert.equal(aboutText(entry('Slackline')), 'Sends your events to Slackline.')
  assert.equal(aboutText(entry('A', { description: 'See [the docs](https://a.example).' })), 'See the docs.')
})
