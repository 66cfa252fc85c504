// The response times of the control API for the requests that the dashboard makes, page by page, while deliveries to a dead destination are pending.

import type { Backlog } from '../environment/backlog.ts'
import { nowMs } from '../environment/http-message.ts'
import { cpuUs } from '../environment/process-stats.ts'
import type { Service } from '../environment/service.ts'

export interface PageTime {
  page: string
  path: string
  /** Whether the filter has no index, so that the request reads messages until the page is full or has read as much as it may. */
  isSearch: boolean
  ms: number[]
  /** CPU time of the service and its database per request, which other work on the machine hardly affects. */
  cpuMs: number
}

const TURNS = 5
const REQUESTS_PER_TURN = 10
const HOUR_MS = 3_600_000
/** The number of pages that are turned before the last one is measured. */
const TURNED_PAGES = 5

interface List {
  data: { id: string; messageId: string | null; userId: string | null }[]
  next: string | null
}

export async function measurePages(service: Service, backlog: Backlog): Promise<PageTime[]> {
  const times = (await pathsOf(service, backlog)).map(
    ([page, path]): PageTime => ({ page, path, isSearch: page.startsWith('search'), ms: [], cpuMs: 0 }),
  )
  const cpu = () => cpuUs([service.pid, ...backlog.place.databasePids()])
  // Every connection of the service to its database plans a statement when it first uses it.
  for (let nth = 0; nth < REQUESTS_PER_TURN; nth += 1) for (const { path } of times) await service.read(path)
  // All paths in turn, so that a busy moment of the machine affects all of them.
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (const time of times) {
      const cpuBefore = cpu()
      for (let nth = 0; nth < REQUESTS_PER_TURN; nth += 1) {
        const startedAtMs = nowMs()
        await service.read(time.path)
        time.ms.push(nowMs() - startedAtMs)
      }
      time.cpuMs += (cpu() - cpuBefore) / 1_000 / (TURNS * REQUESTS_PER_TURN)
    }
  }
  return times
}

/** The requests of each page of the dashboard, with the parameters that the dashboard uses. */
async function pathsOf(service: Service, { deadId = '', healthyId }: Backlog): Promise<[page: string, path: string][]> {
  const iso = (hours: number) => new Date(Math.floor(Date.now() / 60_000) * 60_000 - hours * HOUR_MS).toISOString()
  const deliveries = (query: Query) => pathWith('/api/deliveries', query)
  const messages = (query: Query) => pathWith('/api/messages', query)
  const stats = (query: Query) => pathWith('/api/stats', query)
  const turned = async (path: string): Promise<string> => {
    let at = path
    for (let nth = 0; nth < TURNED_PAGES; nth += 1)
      at = `${path}&cursor=${encodeURIComponent(((await service.read(at)) as List).next ?? '')}`
    return at
  }
  const { id: sourceId } = await service.defaultSource()
  const pending = deliveries({ destinationId: deadId, state: 'pending', limit: 100 })
  const [oldest] = ((await service.read(pending)) as List).data
  const [newest] = ((await service.read(messages({ limit: 50 }))) as List).data
  if (!oldest || !newest) throw new Error('the store has no pending delivery or no message')
  const { oldestPendingAt } = (await service.read(`/api/destinations/${deadId}/health`)) as { oldestPendingAt: string }
  const { data: delivered } = (await service.read(deliveries({ destinationId: healthyId, state: 'delivered', limit: 1 }))) as List
  return [
    ['overview', '/api/nodes'],
    ['overview', '/api/destinations?limit=1000'],
    ['overview', '/api/sources?limit=1000'],
    ['overview', '/api/stats/totals'],
    ['overview', '/api/ledger'],
    ['overview', '/api/destinations/health'],
    ['overview', '/api/rejections'],
    ['overview', stats({ from: iso(24), step: '1h' })],
    ['overview', stats({ from: iso(48), to: iso(24), step: '1h' })],
    ['overview', stats({ from: iso(2), step: '5m', destinationId: deadId })],
    ['source', `/api/sources/${sourceId}`],
    ['source', stats({ from: iso(24), step: '1h', sourceId })],
    ['dead destination', `/api/destinations/${deadId}`],
    ['dead destination', `/api/destinations/${deadId}/health`],
    ['dead destination', stats({ destinationId: deadId, step: '1m' })],
    ['dead destination', deliveries({ destinationId: deadId, state: 'pending', limit: 50, to: after(oldestPendingAt) })],
    ['dead destination', deliveries({ destinationId: deadId, state: 'failed', limit: 1 })],
    ['dead destination', deliveries({ destinationId: deadId, state: 'expired', limit: 1 })],
    ['deliveries', deliveries({ limit: 100 })],
    ['deliveries', pending],
    ['deliveries, page 6', await turned(pending)],
    ['deliveries', deliveries({ destinationId: healthyId, limit: 100 })],
    ['deliveries', deliveries({ state: 'delivered', limit: 100 })],
    ['deliveries, last hour', deliveries({ state: 'pending', from: iso(1), limit: 100 })],
    ['search, deliveries of an event', deliveries({ state: 'pending', event: 'Order Completed', limit: 100 })],
    ['search, deliveries of a user', deliveries({ destinationId: deadId, userId: oldest.userId ?? '', limit: 100 })],
    ['failures', deliveries({ state: 'failed', limit: 100 })],
    ['failures by cause', '/api/deliveries/causes'],
    ['failures by cause', `/api/deliveries/causes?destinationId=${deadId}&from=${iso(24)}`],
    ['a pending delivery', `/api/deliveries/${oldest.id}`],
    ...delivered.map(({ id }): [string, string] => ['a delivered delivery', `/api/deliveries/${id}`]),
    ['messages', messages({ limit: 50 })],
    ['messages, page 6', await turned(messages({ limit: 50 }))],
    ['messages of a source', messages({ limit: 50, sourceId })],
    ['search, messages of a user', messages({ limit: 50, userId: newest.userId ?? '' })],
    ['message by messageId', messages({ limit: 50, messageId: oldest.messageId ?? '' })],
    ['timeline of a message', `/api/messages/${newest.id}`],
    ['timeline by messageId', `/api/messages/${oldest.messageId}`],
    ['replays', '/api/replays?limit=50'],
    ['deletions', '/api/deletions'],
    ['settings', '/api/installation'],
    ['settings', '/api/audit'],
  ]
}

type Query = Record<string, string | number>

function pathWith(path: string, query: Query): string {
  const pairs = Object.entries(query).map(([name, value]): [string, string] => [name, String(value)])
  return `${path}?${new URLSearchParams(pairs).toString()}`
}

/** As the destination's page asks for its oldest pending deliveries. */
function after(time: string): string {
  return new Date(Date.parse(time) + 2_000).toISOString()
}
