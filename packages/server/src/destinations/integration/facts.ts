// What the command line says about an integration, as the API returned it.

import type { JsonObject } from '@switchyard/protocol'
import type { DestinationKind, Fact } from '../port/kind.ts'

export const INTEGRATION_FACTS: DestinationKind['facts'] = {
  receiver: ({ integrationTitle, integrationName }) => integrationTitle ?? integrationName,
  settings: settingFacts,
  content: () => [],
}

function settingFacts(shown: JsonObject): readonly Fact[] {
  const { integration, integrationName, integrationTitle, integrationAliases, settings, secretSettings, subscriptions } = shown as {
    integration: string
    integrationName: string
    /** Services of earlier versions do not send these two. */
    integrationTitle?: string
    integrationAliases?: string[]
    settings: JsonObject
    secretSettings: string[]
    subscriptions: { name: string; action: string; subscribe: string; enabled: boolean }[]
  }
  const texts = Object.entries(settings).map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return [
    ['secrets', []],
    ['integration', `${integrationTitle ?? integrationName} (${integration})`],
    ['names in messages', [...new Set([integrationName, ...(integrationAliases ?? [])])]],
    ['settings', texts.length === 0 ? undefined : texts],
    ['secret settings', secretSettings],
    ...subscriptions.map(
      ({ name, action, subscribe, enabled }): Fact => [`subscription ${name}`, `${action} if ${subscribe}${enabled ? '' : ' (disabled)'}`],
    ),
  ]
}
