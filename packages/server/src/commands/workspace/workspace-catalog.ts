// The parts of the service's catalogue that an import of a workspace needs.

import { at } from '../line/references.ts'
import type { Api } from '../service/api.ts'
import { ApiProblem } from '../service/api.ts'
import { CommandProblem, EXIT } from '../service/problem.ts'

export interface CatalogIntegration {
  available: boolean
  problem: string | null
  settings: Fields & { required: readonly string[] }
  actions: readonly { slug: string; fields: Fields }[]
}

interface Fields {
  properties: Readonly<Record<string, unknown>>
}

/** By slug. An integration that the service does not have is missing. */
export type Catalog = ReadonlyMap<string, CatalogIntegration>

export function has(properties: Fields['properties'], name: string): boolean {
  return Object.hasOwn(properties, name)
}

/** Reads the integrations with these slugs. */
export async function readCatalog(api: Api, slugs: Iterable<string>): Promise<Catalog> {
  const wanted = new Set(slugs)
  const catalog = new Map<string, CatalogIntegration>()
  if (wanted.size === 0) return catalog
  const { data, hint } = await api.get('/api/catalog', { limit: 1 })
  if (!Array.isArray(data) || data.length === 0)
    throw new CommandProblem(
      typeof hint === 'string' ? hint : 'The integrations package is not installed. Run `switchyard catalog install` on the server.',
    )
  for (const slug of wanted) {
    try {
      catalog.set(slug, (await api.get(at`/api/catalog/${slug}`)) as unknown as CatalogIntegration)
    } catch (error) {
      if (!(error instanceof ApiProblem && error.exit === EXIT.notFound)) throw error
    }
  }
  return catalog
}
