// Runs actions of integrations in this process, which should be a separate one: see the hosts of the server. Nothing here knows about
// destinations, shipments or retries.

import type { JsonObject } from '@switchyard/protocol'
import { useOwnAwsKeys } from './aws-credentials.ts'
import { readIntegration } from './catalog.ts'
import { loadDefinition } from './definitions.ts'
import { hostSettings } from './host-settings.ts'
import { withHostValues } from './host-values.ts'
import type { Integration, Tokens } from './integration.ts'
import { keepKafkaProducers } from './kafka-producers.ts'
import { LoadedIntegration } from './loaded-integration.ts'
import { installRecorder } from './recording/recorder.ts'

export type * from './integration.ts'
export { installRecorder }

/**
 * Loads the code of one integration. Rejects if there is none with this slug, or if its code throws while it loads. Settings that the definition
 * does not accept make each run fail, with the reason.
 */
export async function openIntegration(slug: string, settings: JsonObject, options: OpenOptions = {}): Promise<Integration> {
  installRecorder()
  const integration = await readIntegration(slug)
  if (integration === null) throw new Error(`There is no integration "${slug}" in the catalogue.`)
  const secrets = Object.entries(integration.settings.properties).flatMap(([key, { writeOnly }]) => (writeOnly === true ? [key] : []))
  // Some modules read constants of their environment when they are loaded.
  const definition = withHostValues({ env: hostSettings(slug).constants ?? {}, aws: null }, () => loadDefinition(integration.directory))
  useOwnAwsKeys(slug)
  keepKafkaProducers(slug)
  return new LoadedIntegration(definition, settings, new Set(secrets), options.onTokens ?? (() => {}))
}

export interface OpenOptions {
  /** Called when the access token was renewed. */
  onTokens?: (tokens: Tokens) => void
}
