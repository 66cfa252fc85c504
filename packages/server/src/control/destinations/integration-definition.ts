// The definition of an integration, which its settings are checked against. It comes from the integrations package, which may not be installed.

import type { CatalogIntegration } from '@switchyard/integrations/catalog'
import { listed } from '../../api/listed.ts'
import { suggestion } from '../../api/nearest.ts'
import { invalidField } from '../../api/schema.ts'
import { KINDS, kindOf } from '../../destinations/kinds.ts'
import type { Destination } from '../../store/store.ts'
import type { Catalog, OpenCatalog } from '../routes/route.ts'
import type { NewDestinationInput } from './destination-settings.ts'

export const INSTALL_HINT = 'run `switchyard catalog install`'

/** For a new destination; null if its kind needs none. Throws if it cannot be created. */
export async function definitionToUse(open: OpenCatalog | undefined, given: NewDestinationInput): Promise<CatalogIntegration | null> {
  const slug = KINDS[given.type].slug(given)
  if (slug === null) return null
  const catalog = (await open?.()) ?? null
  if (catalog === null)
    throw invalidField('integration', `cannot be used, because the integrations package is not installed; ${INSTALL_HINT}`)
  const definition = await catalog.readIntegration(slug)
  if (definition === null) {
    const meant = await slugsMeant(catalog, slug)
    throw invalidField(
      'integration',
      `is not the slug of an integration${meant === '' ? '; GET /api/catalog lists them' : `. Did you mean ${meant}?`}`,
    )
  }
  if (!definition.available) throw invalidField('integration', `is not available. ${definition.problem}`)
  return definition
}

const MOST_SUGGESTED = 3

/** The slugs that somebody probably meant, such as `actions-amplitude` for `amplitude`, as text. Empty if none is similar. */
export async function slugsMeant(catalog: Catalog, given: string): Promise<string> {
  const entries = await catalog.readCatalog()
  const asName = given.replaceAll(/[-_]+/g, ' ')
  const named = entries.filter(
    ({ slug, name, title }) => slug === `actions-${given}` || contains(`${title} ${name}`, asName) || contains(slug, given),
  )
  const exact = named.find(({ slug, title }) => slug === `actions-${given}` || title.toLowerCase() === asName.toLowerCase())
  const ordered = exact === undefined ? named : [exact, ...named.filter((entry) => entry !== exact)]
  const slugs = given.length < 3 ? [] : ordered.slice(0, MOST_SUGGESTED).map(({ slug }) => slug)
  if (slugs.length === 0)
    slugs.push(
      ...[
        suggestion(
          given,
          entries.map(({ slug }) => slug),
        ) ?? [],
      ].flat(),
    )
  return listed(slugs, ' or ')
}

function contains(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase())
}

/** For an existing destination; null if its kind needs none, and if the package is not installed or no longer has the integration. */
export async function installedDefinition(open: OpenCatalog | undefined, destination: Destination): Promise<CatalogIntegration | null> {
  const slug = kindOf(destination).slug(destination)
  if (slug === null) return null
  const catalog = (await open?.()) ?? null
  return catalog === null ? null : await catalog.readIntegration(slug)
}
