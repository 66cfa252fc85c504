// Which integrations of the catalogue a search shows, best first, and what a card says about each. Pure.

import type { Schemas } from '../../api/client.ts'
import { plural } from '../../text/format.ts'
import { shortName } from '../../text/integration-tile.ts'
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

export function problemText({ available, problem }: Pick<CatalogEntry, 'available' | 'problem'>): string | null {
  return problem === null ? null : `${available ? 'Does not work with Switchyard' : 'Not available'}. ${problem}`
}

export function found(entries: readonly CatalogEntry[], text: string, auth: string): CatalogEntry[] {
  const words = text.trim().toLowerCase().split(/\s+/)
  return entries
    .filter((entry) => auth === '' || entry.auth === auth)
    .map((entry) => ({ entry, rank: rankOf(entry, words) }))
    .filter(({ rank }) => rank !== null)
    .sort(
      (a, b) =>
        Number(a.entry.problem !== null) - Number(b.entry.problem !== null) ||
        (a.rank as number) - (b.rank as number) ||
        shortName(a.entry.name).localeCompare(shortName(b.entry.name)),
    )
    .map(({ entry }) => entry)
}

/** Null if a word is missing. Names that start with the text come first, then names that contain it, then descriptions. */
function rankOf({ name, slug, description }: CatalogEntry, words: readonly string[]): number | null {
  const title = shortName(name).toLowerCase()
  if (title.startsWith(words.join(' '))) return 0
  if (words.every((word) => title.includes(word))) return 1
  const all = `${title} ${slug} ${description.toLowerCase()}`
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
export function aboutText({ name, description }: CatalogEntry): string {
  const text = plainText(description)
  return text === '' ? `Sends your events to ${shortName(name)}.` : text
}
