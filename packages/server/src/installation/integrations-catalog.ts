// Opens the catalogue of the installed integrations package. Only its data is loaded, and none of the code of the integrations.

import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { Catalog } from '../control/routes/route.ts'
import { findIntegrationsPackage } from './integrations-package.ts'

/** Returns null if the package is not installed. `folder` is that of `integrationsFolder`. */
export async function openCatalog(folder: string): Promise<Catalog | null> {
  const found = findIntegrationsPackage(folder)
  if (found === null) return null
  // The package may be anywhere, so its exports are resolved from inside of it.
  const file = createRequire(new URL('package.json', found)).resolve('@switchyard/integrations/catalog')
  return (await import(pathToFileURL(file).href)) as Catalog
}
