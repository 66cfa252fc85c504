// What errors of PostgreSQL mean for a load.

import { problemOf } from '../failure.ts'
import type { WarehouseError } from '../warehouse.ts'

const STATES: [RegExp, WarehouseError['code'], string][] = [
  [/^28/, 'credentials_refused', 'PostgreSQL refused the user name or the password.'],
  [/^3D000$/, 'not_found', 'The database does not exist.'],
  [/^42501$/, 'permission_missing', 'The user has no permission for this. Grant it, or use another user.'],
  [/^25006$/, 'read_only', 'The database is read-only. Use the address of the primary server.'],
  [/^53100$/, 'disk_full', 'The disk of the server is full. Free some space; loads continue by themselves.'],
  [/^(42703|42P01|42804|42846|22P02|22007|22008|22003|23\d\d\d|428C9|42809)$/, 'table_changed', 'The table is not as the service made it.'],
  [/^(57P0[123]|08|53300)/, 'unreachable', 'The server does not accept connections now.'],
  [/^(57014|55P03|40P01|40001)$/, 'timed_out', 'The statement waited too long for the server or for a lock.'],
]

export function postgresProblem(error: unknown, place: string): WarehouseError {
  const { code = '', message = '' } = (error ?? {}) as { code?: string; message?: string }
  const known = /^[0-9A-Z]{5}$/.test(code) ? STATES.find(([pattern]) => pattern.test(code)) : undefined
  if (known !== undefined) return { code: known[1], message: `${place}: ${known[2]} PostgreSQL says: ${message}` }
  if (/timeout|timed out/i.test(message)) return { code: 'timed_out', message: `${place}: The server did not answer in time.` }
  if (/Connection terminated|not queryable/i.test(message)) return { code: 'unreachable', message: `${place}: The connection was lost.` }
  return problemOf(error, place)
}
