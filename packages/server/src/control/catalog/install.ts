// Routes that install the catalogue of integrations, and the warehouse package, on the machine of the service, and show the progress.

import { integer, nullable, object, oneOf, string } from '../../api/schema.ts'
import type { CatalogInstaller } from '../routes/catalog-installer.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const INSTALLATION = object(
  {
    state: oneOf(['missing', 'installing', 'installed', 'failed'], {
      description: 'With `missing` and `failed`, the package is not there. A package of another version counts as missing.',
    }),
    done: integer({ description: 'During the installation: the number of packages that are already installed.' }),
    total: integer({ description: 'During the installation: the total number of packages.' }),
    error: nullable(string({ description: 'Why the last installation failed; null if it did not fail.' })),
  },
  { title: 'CatalogInstallation' },
)

export function catalogInstallRoutes({ store, catalogInstaller, warehouseInstaller }: ControlParts): Route[] {
  function given(installer: CatalogInstaller | undefined): CatalogInstaller {
    if (installer === undefined) throw new Error('the service has no installer of packages')
    return installer
  }

  return [
    route('GET', '/catalog/install', {
      summary: 'Show whether the catalogue is installed, or the progress of the installation',
      access: { role: 'viewer', sources: 'none' },
      answer: INSTALLATION,
      handle: () => given(catalogInstaller).state(),
    }),
    route('POST', '/catalog/install', {
      summary: 'Install the catalogue of integrations',
      access: { role: 'admin', sources: 'none' },
      description:
        'Downloads the integrations (about 110 MB) from the npm registry, in the background, to the machine that answers this request. The machine needs npm. If the catalogue is already installed or being installed, nothing changes. With several nodes, install it on each of them.',
      status: 202,
      answer: INSTALLATION,
      async handle({ actor }) {
        await store.history.noteAudit({ actor, action: 'catalog.install', subject: 'catalog', before: null, after: null })
        return given(catalogInstaller).start()
      },
    }),
    route('GET', '/warehouse/install', {
      summary: 'Show whether the warehouse package is installed, or the progress of the installation',
      access: { role: 'viewer', sources: 'none' },
      answer: INSTALLATION,
      handle: () => given(warehouseInstaller).state(),
    }),
    route('POST', '/warehouse/install', {
      summary: 'Install the warehouse package',
      access: { role: 'admin', sources: 'none' },
      description:
        'Downloads what warehouses need from the npm registry, in the background, to the machine that answers this request. The machine needs npm. If the package is already installed or being installed, nothing changes. With several nodes, install it on each of them.',
      status: 202,
      answer: INSTALLATION,
      async handle({ actor }) {
        await store.history.noteAudit({ actor, action: 'warehouse.install', subject: 'warehouse', before: null, after: null })
        return given(warehouseInstaller).start()
      },
    }),
  ]
}
