// Errors of engines as data: a stable code and a sentence that says what to do. Sentences never contain credentials.

import type { WarehouseError, WarehouseFailure } from './warehouse.ts'

export class WarehouseProblem extends Error implements WarehouseFailure {
  override name = 'WarehouseProblem'
  readonly warehouse: WarehouseError

  constructor(code: WarehouseError['code'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.warehouse = { code, message }
  }
}

/** What an error of the system means for a warehouse. `place` names it, without credentials. */
export function problemOf(error: unknown, place: string): WarehouseError {
  if (error instanceof WarehouseProblem) return error.warehouse
  const { code = '', message = String(error) } = (error ?? {}) as { code?: string; message?: string }
  const cause = (error as { cause?: NodeJS.ErrnoException } | null)?.cause
  const known = SYSTEM_CODES[code] ?? SYSTEM_CODES[cause?.code ?? '']
  if (known !== undefined) return { code: known[0], message: `${place}: ${known[1]} (${cause?.message ?? message})` }
  return { code: 'failed', message: `${place}: ${cause?.message ?? message}` }
}

const REFUSED: [WarehouseError['code'], string] = [
  'permission_missing',
  'The service has no permission to write there. Give its user write access.',
]
const AWAY: [WarehouseError['code'], string] = ['unreachable', 'The server cannot be reached. Check the address, and that it is running.']
const LATE: [WarehouseError['code'], string] = ['timed_out', 'The server did not answer in time.']
const SYSTEM_CODES: Record<string, [WarehouseError['code'], string]> = {
  EACCES: REFUSED,
  EPERM: REFUSED,
  EROFS: ['read_only', 'The file system is read-only.'],
  ENOSPC: ['disk_full', 'The disk is full. Free some space; loads continue by themselves.'],
  EDQUOT: ['disk_full', 'The disk quota is used up. Free some space; loads continue by themselves.'],
  ENOTDIR: ['not_found', 'A part of the path is a file, not a folder.'],
  ECONNREFUSED: AWAY,
  ECONNRESET: AWAY,
  ENOTFOUND: AWAY,
  EHOSTUNREACH: AWAY,
  ENETUNREACH: AWAY,
  EPIPE: AWAY,
  UND_ERR_SOCKET: AWAY,
  ETIMEDOUT: LATE,
  UND_ERR_CONNECT_TIMEOUT: LATE,
  UND_ERR_HEADERS_TIMEOUT: LATE,
  UND_ERR_BODY_TIMEOUT: LATE,
}
