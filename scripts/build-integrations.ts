// Builds @switchyard/integrations as a package into packages/integrations/dist/package: its compiled source with types, and the generated
// catalogue. `switchyard catalog install` of the published service installs it.

import { spawnSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { buildOptionalPackage, packOptionalPackage } from './optional-package.ts'

const home = join(import.meta.dirname, '..', 'packages', 'integrations')

/** Empties the folder and builds into it. */
export function buildIntegrations(folder: string): Promise<void> {
  return buildOptionalPackage({ workspace: 'integrations', files: ['README.md', 'NOTICE'], complete: addCatalogue }, folder)
}

function addCatalogue(own: string, dist: string): void {
  const generated = spawnSync(process.execPath, [join(own, 'src', 'generate-catalog.ts')], { stdio: ['ignore', 'ignore', 2] })
  if (generated.status !== 0) throw new Error('the catalogue could not be generated')
  cpSync(join(own, 'dist', 'catalog'), join(dist, 'catalog'), { recursive: true })
}

if (import.meta.main) {
  await buildIntegrations(join(home, 'dist', 'package'))
  packOptionalPackage('integrations')
}
