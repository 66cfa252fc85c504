// `switchyard catalog install`: installs the integrations package on this machine. It needs no running service; a running one finds the package
// without a restart.

import { type Call, type Command, CommandProblem, type Flag } from '../line/command.ts'
import { localConfig } from './local-installation.ts'

export const INSTALL_FLAGS: Readonly<Record<string, Flag>> = {
  force: { placeholder: null, description: 'Install again, even if the catalogue is already installed.' },
  from: {
    placeholder: 'PACKAGE',
    description: 'The path or URL of a tarball to install instead of the package in the registry. Not used in a clone.',
  },
  store: {
    placeholder: 'ADDRESS',
    description: 'The address of the store of the service. By default, the package is installed in a folder beside a SQLite store.',
    variable: 'SWITCHYARD_STORE',
  },
}

export const catalogInstall: Command = {
  name: 'catalog install',
  summary: 'Install the integrations of the catalogue (about 100 MB) for the service on this machine',
  details:
    'The integrations are a separate package, @switchyard/integrations, which npm downloads from its registry. Run the command on the machine of the service, with the same settings. The service finds the package without a restart. If the service runs in a clone, the package is installed there; otherwise in the folder SWITCHYARD_INTEGRATIONS_FOLDER. With several nodes, run it on each of them.\n\n' +
    'If an installation is interrupted, nothing changes; run the command again. After an upgrade of the service, run it again to get the integrations of the new version.',
  flags: INSTALL_FLAGS,
  examples: ['switchyard catalog install'],
  run: install,
}

export async function install(call: Call): Promise<void> {
  const [{ installIntegrations, installationState, InstallProblem }, { findIntegrationsPackage, integrationsFolder }] = await Promise.all([
    import('../../installation/install-integrations.ts'),
    import('../../installation/integrations-package.ts'),
  ])
  const folder = integrationsFolder(localConfig(call))
  const options = { folder, from: call.flag('from'), signal: call.signal }
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
  const url = findIntegrationsPackage(folder)
  if (url === null)
    throw new CommandProblem('npm finished, but the installed package does not have the version of this service. Check --from.')
  if (call.json) call.out.json({ installed: isNeeded, package: url.href })
  else call.out.line(isNeeded ? 'The catalogue is installed.' : 'The catalogue is already installed. To install it again, use --force.')
}
