// Creates the sources and destinations of the demo with the public control API.

import type { Receiver } from './receivers.ts'
import type { ServiceProcess } from './service-process.ts'
import type { SourceName } from './shop.ts'

export type DestinationName = 'warehouse' | 'crm' | 'reporting'

export const TITLES: Record<DestinationName, string> = { warehouse: 'Warehouse', crm: 'CRM', reporting: 'Old reporting' }

/** The default is four hours, too long to watch. */
export const SHORT_WINDOW_MS = 45_000

export interface Wiring {
  sources: Record<SourceName, string>
  writeKeys: Record<SourceName, string>
  destinations: Record<DestinationName, string>
}

export async function wire(service: ServiceProcess, receivers: Record<DestinationName, Receiver>): Promise<Wiring> {
  const { api } = service
  const [, app] = await Promise.all([
    api('PATCH', `/sources/${service.sourceId}`, { name: 'Web shop' }),
    api<{ id: string; writeKeys: string[] }>('POST', '/sources', { name: 'Mobile app' }),
  ])
  const add = async (name: DestinationName, settings: object): Promise<string> => {
    const { url, secrets } = receivers[name]
    const body = { name: TITLES[name], sourceIds: [service.sourceId, app.id], urls: [url], ...secrets, ...settings }
    return (await api<{ id: string }>('POST', '/destinations', body)).id
  }
  return {
    sources: { web: service.sourceId, app: app.id },
    writeKeys: { web: service.writeKey, app: app.writeKeys[0] as string },
    destinations: {
      warehouse: await add('warehouse', { batch: { size: 50, lingerMs: 1_000 } }),
      crm: await add('crm', {
        headers: { 'x-team': 'customer-care' },
        filter: { types: { deny: ['page', 'screen'] }, events: { deny: ['Product Viewed'] } },
      }),
      reporting: await add('reporting', { retryWindowMs: SHORT_WINDOW_MS }),
    },
  }
}
