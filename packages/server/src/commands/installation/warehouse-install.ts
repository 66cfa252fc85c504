// `switchyard warehouse install`: installs the warehouse package on this machine. It needs no running service; a running one finds the package without a
// restart.

import { type Call, type Command, CommandProblem } from '../line/command.ts'
import { INSTALL_FLAGS } from './catalog-install.ts'
import { localConfig } from './local-installation.ts'

export const warehouseInstall: Command = {
  name: 'warehouse install',
  summary: 'Install the package for lakes and warehouses on this machine',
  details:
    'The engines of warehouses are a separate package, @switchyard/warehouse, which npm downloads from its registry. Run the command on the machine of the service, with the same settings. The service finds the package without a restart. If the service runs in a clone, the package is installed there; otherwise in the folder SWITCHYARD_WAREHOUSE_FOLDER. With several nodes, run it on each of them.\n\n' +
    'If an installation is interrupted, nothing changes; run the command again. After an upgrade of the service, run it again to get the package of the new version.',
  flags: { ...INSTALL_FLAGS, force: { placeholder: null, description: 'Install again, even if the package is already installed.' } },
  examples: ['switchyard warehouse install'],
  run: install,
}

async function install(call: Call): Promise<void> {
  const [{ installIntegrations, installationState, InstallProblem }, { findPackage, WAREHOUSE, warehouseFolder }] = await Promise.all([
    import('../../installation/install-integrations.ts'),
    import('../../installation/integrations-package.ts'),
  ])
  const folder = warehouseFolder(localConfig(call))
  const options = { package: WAREHOUSE, folder, from: call.flag('from'), signal: call.signal }
  const isNeeded = call.has('force') || installationState(options).state !== 'installed'
  if (isNeeded) {
    const progress = call.out.progress('Installing (packages)')
    try {
      await installIntegrations(options, (done, total) => progress.update(done, total))
    } catch (error) {
      throw error instanceof InstallProblem ? new CommandProblem(error.message) : error
    } finally {
      progress.end()
    }
  }
  const url = findPackage(WAREHOUSE, folder)
  if (url === null)
    throw new CommandProblem('npm finished, but the installed package does not have the version of this service. Check --from.')
  if (call.json) call.out.json({ installed: isNeeded, package: url.href })
  else
    call.out.line(
      isNeeded ? 'The warehouse package is installed.' : 'The warehouse package is already installed. To install it again, use --force.',
    )
}
