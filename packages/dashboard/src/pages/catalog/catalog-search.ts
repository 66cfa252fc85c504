// Which integrations of the catalogue a search shows, best first, and what a card says about each. Pure.

import type { Schemas } from '../../api/client.ts'
import { plural } from '../../text/format.ts'
import { plainText } from '../../text/markdown-links.ts'

export type CatalogEntry = Schemas['CatalogEntry']
export type Auth = CatalogEntry['auth']

/** How an integration authenticates itself, in the words of people who set one up. */
export const AUTH_NAMES: Readonly<Record<Auth, string>> = {
  none: 'No credentials',
  custom: 'API key',
  basic: 'User name and password',
  oauth2: 'Your own OAuth app',
}

export type Category = CatalogEntry['category']

/** What the tools of a category are for. */
export const CATEGORY_NAMES: Readonly<Record<Category, string>> = {
  analytics: 'Analytics',
  messaging: 'E-mail, SMS and push',
  crm: 'CRM and sales',
  advertising: 'Advertising and conversions',
  audiences: 'Audiences for ads and lists',
  support: 'Support, feedback and surveys',
  experiments: 'Experiments and feature flags',
  personalization: 'Personalization and search',
  loyalty: 'Loyalty and referrals',
  billing: 'Billing and usage',
  storage: 'Files, streams and databases',
  'data-quality': 'Data quality',
  developer: 'Webhooks and automation',
  other: 'Other',
}

export interface Choice {
  text: string
  auth: string
  category: string
}

export function problemText({ available, problem }: Pick<CatalogEntry, 'available' | 'problem'>): string | null {
  return problem === null ? null : `${available ? 'Does not work with Switchyard' : 'Not available'}. ${problem}`
}

export function found(entries: readonly CatalogEntry[], { text, auth, category }: Choice): CatalogEntry[] {
  const words = text.trim().toLowerCase().split(/\s+/)
  return entries
    .filter((entry) => (auth === '' || entry.auth === auth) && (category === '' || entry.category === category))
    .map((entry) => ({ entry, rank: rankOf(entry, words) }))
    .filter(({ rank }) => rank !== null)
    .sort(
      (a, b) =>
        Number(a.entry.problem !== null) - Number(b.entry.problem !== null) ||
        (a.rank as number) - (b.rank as number) ||
        (a.entry.popularity ?? UNPOPULAR) - (b.entry.popularity ?? UNPOPULAR) ||
        a.entry.title.localeCompare(b.entry.title),
    )
    .map(({ entry }) => entry)
}

const UNPOPULAR = 1_000

/** The same numbers as in the documentation: how many work with ordinary messages, and how many others there are. */
export function countText(entries: readonly CatalogEntry[], shown: number): string {
  if (shown !== entries.length) return `${plural(shown, 'integration')} found`
  const working = entries.filter(({ problem }) => problem === null)
  const ordinary = working.filter(({ needs }) => needs === null).length
  const [ofAudiences, broken] = [working.length - ordinary, entries.length - working.length]
  return [
    `${plural(ordinary, 'integration')}.`,
    ...(ofAudiences === 0 ? [] : [`${ofAudiences} more ${ofAudiences === 1 ? 'needs' : 'need'} messages that say who is in an audience.`]),
    ...(broken === 0 ? [] : [`${broken} ${broken === 1 ? 'does not work and is' : 'do not work and are'} listed last.`]),
  ].join(' ')
}

/**
 * Null if a word is missing. Names that start with the text come first, then names that contain it, then descriptions and what the tool is for. Within
 * each, popular ones come first.
 */
function rankOf({ title: shown, name, slug, description, category, keywords }: CatalogEntry, words: readonly string[]): number | null {
  const title = shown.toLowerCase()
  if (title.startsWith(words.join(' '))) return 0
  if (words.every((word) => title.includes(word))) return 1
  const all = `${title} ${name} ${slug} ${description} ${CATEGORY_NAMES[category]} ${keywords.join(' ')}`.toLowerCase()
  return words.every((word) => all.includes(word)) ? 2 : null
}

/** `2 required settings · 3 actions · 2 presets · sends in batches` */
export function abilitiesText({ requiredSettingCount, actionCount, presetCount, batch }: CatalogEntry): string {
  return [
    ...(requiredSettingCount === 0 ? [] : [plural(requiredSettingCount, 'required setting')]),
    plural(actionCount, 'action'),
    ...(presetCount === 0 ? [] : [plural(presetCount, 'preset')]),
    ...(batch ? ['sends in batches'] : []),
  ].join(' · ')
}

/** One line; many definitions have no description. */
export function aboutText({ title, description }: CatalogEntry): string {
  const text = plainText(description)
  return text === '' ? `Sends your events to ${title}.` : text
}
