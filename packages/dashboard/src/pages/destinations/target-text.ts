// Where a destination sends messages, in a few words. Pure.

import type { Schemas } from '../../api/client.ts'
import { shortName } from '../../text/integration-tile.ts'

export function targetText(destination: Schemas['Destination']): string {
  if (destination.type === 'integration') return shortName(destination.integrationName)
  const { urls } = destination
  return `${urls.length > 1 ? `${urls.length} URLs: ` : ''}${urls[0] ?? ''}`
}
