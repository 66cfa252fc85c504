// Warehouse Tables Need Attention, and Warehouse Tables Recovered: tables of a warehouse cannot be loaded, were dropped, or have reached a limit.

import type { TableNotice } from '../../store/port/warehouse-tables.ts'
import { DAY_MS, many, pendingText, rule, span } from './rule.ts'

export interface WarehouseNotices {
  nowMs: number
  /** Null if the destination is no warehouse. */
  notices: readonly TableNotice[] | null
  isActive: boolean
  pendingNow: number
  /** Why the last attempt failed. */
  reason: string | null
}

/** How long a table that was dropped, or a limit that is reached, stays listed after it was noticed last. */
const LISTED_MS = DAY_MS
const SHOWN_TABLES = 5
const FAILING_END =
  'The other tables are loaded, and the messages of tables that cannot be loaded are retried. The attempts of their deliveries show the error.'
const SEVERITIES = { package: 'critical', failing: 'critical', limit: 'warning', recreated: 'notice' } as const
type Kind = keyof typeof SEVERITIES

export const warehouseTables = rule({
  id: 'warehouse_tables',
  event: 'Warehouse Tables Need Attention',
  closedEvent: 'Warehouse Tables Recovered',
  subject: 'destination',
  severity: ({ kind }) => SEVERITIES[kind as Kind] ?? 'warning',
  measure: { name: 'tables', label: 'tables' },
  description:
    'Tables of a warehouse cannot be loaded, were dropped and created again, or have reached the largest number of columns; or the warehouse package is not installed.',
  sentences: [
    'Open when a table of a warehouse cannot be loaded while deliveries are pending, was dropped, or has reached a limit, or when the warehouse package is missing. Close when the table is loaded again, or a day after a dropped table or a limit was noticed last.',
  ],
  settings: {},
  judge({ nowMs, notices, isActive, pendingNow: pending, reason }: WarehouseNotices) {
    const none = { kind: null, tables: 0, names: null, problem: null, pending }
    if (notices === null) return { verdict: 'close', sinceMs: nowMs, details: none }
    if (isActive && pending > 0 && reason === 'warehouse_not_installed')
      return { verdict: 'open', sinceMs: nowMs, details: { ...none, kind: 'package' } }
    const isCurrent = ({ kind, lastMs }: TableNotice): boolean => (kind === 'failing' ? pending > 0 : nowMs - lastMs < LISTED_MS)
    for (const kind of ['failing', 'limit', 'recreated'] as const) {
      const found = notices.filter((notice) => notice.kind === kind && isCurrent(notice)).sort((one, other) => one.sinceMs - other.sinceMs)
      const [first] = found
      if (first === undefined) continue
      const names = found.flatMap(({ table }) => table ?? [])
      const shown = names.length > SHOWN_TABLES ? [...names.slice(0, SHOWN_TABLES), `and ${names.length - SHOWN_TABLES} more`] : names
      return {
        verdict: 'open',
        sinceMs: first.sinceMs,
        details: { kind, tables: found.length, names: shown.join(', '), problem: first.message, pending },
      }
    }
    return { verdict: 'close', sinceMs: nowMs, details: none }
  },
  opened(name, { kind, tables, names, problem, pending }) {
    switch (kind as Kind) {
      case 'package':
        return `The warehouse package is not installed, so nothing is loaded into "${name}". Install it with \`switchyard warehouse install\` on each machine of the service. ${pendingText(pending)}`
      case 'failing':
        return `${many(tables, 'table')} of "${name}" cannot be loaded (${String(names)}): ${String(problem)} ${FAILING_END}`
      case 'limit':
        return `A limit of "${name}" is reached${names === '' ? '' : ` (${String(names)})`}. ${String(problem)} Nothing is lost.`
      default:
        return `${many(tables, 'table')} of "${name}" (${String(names)}): ${String(problem)}`
    }
  },
  closed: (name, { forMs }) => `The tables of "${name}" need no attention any more. That had lasted ${span(forMs)}.`,
  link: (id) => `/destinations/${id}`,
})
