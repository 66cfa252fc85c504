// The definition of an integration, which its settings are checked against. It comes from the integrations package, which may not be installed.

import type { CatalogEntry, CatalogIntegration } from '@switchyard/integrations/catalog'
import { invalidField } from '../../api/schema.ts'
import type { Destination } from '../../store/store.ts'

export interface Catalog {
  readCatalog(): Promise<readonly CatalogEntry[]>
  readIntegration(slug: string): Promise<CatalogIntegration | null>
}

/** Called each time, because the package can be installed while the service runs. */
export type OpenCatalog = () => Promise<Catalog | null>

export const INSTALL_HINT = 'run `switchyard catalog install`'

/** For a new destination. Throws if it cannot be created. */
export async function definitionToUse(open: OpenCatalog | undefined, slug: string): Promise<CatalogIntegration> {
  const catalog = (await open?.()) ?? null
  if (catalog === null)
    throw invalidField('integration', `cannot be used, because the integrations package is not installed; ${INSTALL_HINT}`)
  const definition = await catalog.readIntegration(slug)
  if (definition === null) throw invalidField('integration', 'is not the slug of an integration; GET /api/catalog lists them')
  if (!definition.available) throw invalidField('integration', `is not available. ${definition.problem}`)
  return definition
}

/** For an existing destination; null for a webhook, and if the package is not installed or no longer has the integration. */
export async function installedDefinition(open: OpenCatalog | undefined, { integration }: Destination): Promise<CatalogIntegration | null> {
  if (integration === null) return null
  const catalog = (await open?.()) ?? null
  return catalog === null ? null : await catalog.readIntegration(integration.slug)
}
