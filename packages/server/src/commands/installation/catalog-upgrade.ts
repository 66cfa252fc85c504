// `switchyard catalog upgrade`: compares the destinations of a running service with the integrations of this version, so that the command of a new version
// can say before an upgrade which destinations will be held.

import type { JsonObject } from '@switchyard/protocol'
import type { misfit as Misfit } from '../../destinations/integration/misfit.ts'
import type { Subscription } from '../../model/configuration.ts'
import { type Call, type Command, CommandProblem, EXIT } from '../line/command.ts'
import { cell } from '../line/listing.ts'
import { INSTALL_FLAGS, install } from './catalog-install.ts'
import { localConfig } from './local-installation.ts'

interface Compared {
  id: unknown
  name: unknown
  integration: string
  /** What does not fit; null if it fits. */
  problem: string | null
}

export const catalogUpgrade: Command = {
  name: 'catalog upgrade',
  summary: 'Install the integrations of this version, and list the destinations that do not fit them',
  details:
    'Run the command of the new version against the running service, before you upgrade it: with --check, nothing is installed, and the destinations are compared with the integrations that are already installed for this version. A destination does not fit if an action of it is gone, or if a setting or a field is newly required. After the upgrade, its deliveries are held until it fits. The exit code is 1 if a destination does not fit.',
  flags: {
    check: { placeholder: null, description: 'Only compare: install nothing.' },
    ...INSTALL_FLAGS,
  },
  examples: ['switchyard catalog upgrade --check'],
  async run(call) {
    if (!call.has('check')) await install({ ...call, json: false })
    const compared = await compare(call)
    const misfits = compared.filter(({ problem }) => problem !== null)
    if (call.json) call.out.json({ destinations: compared })
    else {
      for (const { id, name, integration, problem } of misfits) call.out.line(`${cell(name)} (${cell(id)}, ${integration}): ${problem}`)
      const fit = compared.length - misfits.length
      call.out.line(
        compared.length === 0
          ? 'The service has no destinations that are integrations.'
          : `${fit} of ${compared.length} ${compared.length === 1 ? 'destination fits' : 'destinations fit'} the integrations of this version.`,
      )
    }
    return misfits.length === 0 ? EXIT.ok : EXIT.failed
  },
}

async function compare(call: Call): Promise<Compared[]> {
  const [{ openCatalog }, { integrationsFolder }] = await Promise.all([
    import('../../installation/integrations-catalog.ts'),
    import('../../installation/integrations-package.ts'),
  ])
  const catalog = await openCatalog(integrationsFolder(localConfig(call)))
  if (catalog === null)
    throw new CommandProblem(
      'The integrations of this version are not installed here. Run `switchyard catalog upgrade` without --check: a running service of another version is not affected.',
    )
  const compared: Compared[] = []
  for await (const destination of call.api.all('/api/destinations')) {
    if (destination['type'] !== 'integration') continue
    const { id, name, integration } = destination as JsonObject & { integration: string }
    compared.push({ id, name, integration, problem: await problemOf(destination, await catalog.readIntegration(integration)) })
  }
  return compared
}

async function problemOf(destination: JsonObject, definition: Parameters<typeof Misfit>[1] | null): Promise<string | null> {
  if (definition === null) return 'The integration is no longer in the catalogue.'
  if (!definition.available) return `The integration is no longer available. ${definition.problem ?? ''}`.trim()
  const { misfit } = await import('../../destinations/integration/misfit.ts')
  const { settings, secretSettings, subscriptions } = destination as unknown as {
    settings: JsonObject
    secretSettings: string[]
    subscriptions: Subscription[]
  }
  const { slug, name } = definition
  // The API does not show secrets, only which of them have a value.
  const known = { ...settings, ...Object.fromEntries(secretSettings.map((secret) => [secret, null])) }
  const found = misfit({ settings: known, subscriptions, integration: { slug, name, fieldsChecked: true } }, definition)
  return found === null ? null : `${found.field} ${found.problem}.`
}
