// The names that people see are spelled as their companies spell them, without words of Segment's app.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CatalogEntry, readCatalog } from './catalog.ts'
import { TITLED, titleOf } from './titles.ts'

// Titles that a program could have made of the slug, of which a person knows no other spelling. A new integration fails the test until somebody looks
// up how its company writes the name, and adds it here or to the table of titles.
const READ = new Set(
  `Aampe, Accoil Analytics, Acoustic, Acoustic Campaign, Actable Predictive, Adjust, Adobe Target, Airship, Algolia Insights, Altertable,
   Ambee, Amplitude, Amplitude Cohorts, Antavo, Appcues, Attentive, Attio, Attribution, Avo, Batch, Braze, Braze Cohorts, Calliper, Canny,
   Canvas, Clay, Close, Contentstack, Cordial, Courier, Criteo Audiences, Dotdigital, Dotdigital Audiences, Drip, Dub, Emarsys, Encharge,
   Epsilon, Equals, Facebook Custom Audiences, Friendbuy, Fullstory, Gameball, Gleap, Google Analytics 4, Google Campaign Manager 360,
   Google Data Manager, Google Sheets, Heap, Hilo, Hyperengage, Insider, Insider Audiences, Intercom, Ironclad, Iterable, Iterable Audiences,
   Iterable Lists, Jimo, June, Kafka, Kameleoon, Kevel Audience, Klaviyo, Klime, Koala, Lark, Launchpad, Listrak, Loops, Mantle,
   Marketo Static Lists, Memora, Memora Internal, Metronome, Mixpanel, Movable Ink, Nudge, Optimizely Advanced Audience Targeting,
   Optimizely Data Platform, Optimizely Feature Experimentation, Optimizely Web, Ortto, Ortto Audiences, Outfunnel, Pardot, Pendo Audiences,
   Pipedrive, Podscribe, Postscript, Prodeology, Pushwoosh, Qualified, Qualtrics, Recombee, Reddit Audiences, Rehook, Responsys, Revend, Ripe,
   Rokt Audiences, Salesforce, Schematic, Segment, Segment Profiles, Slack, Snap Audiences, Spiffy, Sprig, Survicate, Taboola, Taguchi,
   Toplyne, Topsort, Trackey, Trubrics, Twilio, Twilio Messaging, Twilio Messaging Omnichannel, Twilio Studio, Usermaven, Userpilot,
   Vibe Audience, Voucherify, Voyage, Webhook, Webhook Audiences, Xtremepush, Yahoo Audiences, Yonoma, Yotpo, Zapier`
    .split(',')
    .map((title) => title.trim()),
)

/** Words in which a capital is missing: they are never written so. */
const MISSPELLED =
  /\b(?:Api|Ai|Aws|Capi|Crm|Csv|Dv360|Iqm|Io|Ms|Px|Rmp|Sftp|Url|Vwo|Customerio|Hubspot|Launchdarkly|Linkedin|Posthog|Sendgrid|Tiktok)\b/

function titleCased(slug: string): string {
  const words = slug
    .replace(/^actions-|-actions$/g, '')
    .replace(/-cloud(?:-actions)?$/, '')
    .split('-')
  return words.map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`).join(' ')
}

const entries: readonly CatalogEntry[] = await readCatalog()

test('no title has a word of the app of Segment in it, or a misspelled one, and no two are the same', () => {
  for (const { slug, title } of entries) {
    assert.match(title, /^\S(?:.*\S)?$/, slug)
    assert.doesNotMatch(title, /\bactions?\b|cloud mode|cloud destination/i, slug)
    assert.doesNotMatch(title, MISSPELLED, slug)
    if (slug !== 'actions-salesforce-marketing-cloud') assert.doesNotMatch(title, /\bcloud\b/i, slug)
  }
  const titles = entries.map(({ title }) => title.toLowerCase())
  assert.deepEqual(
    titles.filter((title, at) => titles.indexOf(title) !== at),
    [],
  )
})

test('a title that a program could have made of the slug has been read by a person', () => {
  const unknown = entries.filter(({ slug, title }) => title === titleCased(slug) && !READ.has(title)).map(({ title }) => title)
  assert.deepEqual(unknown, [])
  const titles = new Set(entries.map(({ title }) => title))
  assert.deepEqual(
    [...READ].filter((title) => !titles.has(title)),
    [],
  )
})

test('every row of the table is of an integration, and changes something', () => {
  for (const slug of TITLED) {
    const entry = entries.find((each) => each.slug === slug)
    assert.ok(entry !== undefined, slug)
    assert.notEqual(titleOf('another', entry.name), entry.title, slug)
  }
})

test('titles are those that the companies publish, and names stay what messages say', () => {
  const shown = (slug: string): unknown[] => entries.filter((entry) => entry.slug === slug).flatMap(({ name, title }) => [title, name])
  assert.deepEqual(shown('actions-customerio'), ['Customer.io', 'Actions Customerio'])
  assert.deepEqual(shown('actions-posthog'), ['PostHog', 'Posthog'])
  assert.deepEqual(shown('actions-launchdarkly'), ['LaunchDarkly', 'LaunchDarkly'])
  assert.deepEqual(shown('actions-hubspot-cloud'), ['HubSpot', 'HubSpot Cloud Mode (Actions)'])
  assert.deepEqual(shown('actions-google-analytics-4'), ['Google Analytics 4', 'Google Analytics 4 Cloud'])
  assert.deepEqual(shown('june-actions'), ['June', 'June (Actions)'])
})
