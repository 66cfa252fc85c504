// Builds @switchyard/warehouse as a package into packages/warehouse/dist/package: its compiled source with types. `switchyard warehouse install` of the
// published service installs it.

import { join } from 'node:path'
import { buildOptionalPackage, packOptionalPackage } from './optional-package.ts'

/** Empties the folder and builds into it. */
export function buildWarehouse(folder: string): Promise<void> {
  return buildOptionalPackage({ workspace: 'warehouse', files: ['README.md', 'warm-up.parquet'] }, folder)
}

if (import.meta.main) {
  await buildWarehouse(join(import.meta.dirname, '..', 'packages', 'warehouse', 'dist', 'package'))
  packOptionalPackage('warehouse')
}
