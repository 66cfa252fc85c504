// What errors of ClickHouse mean for a load.

import { problemOf } from '../failure.ts'
import type { WarehouseError } from '../warehouse.ts'

export class ClickHouseError extends Error {
  override name = 'ClickHouseError'
  readonly code: number

  constructor(code: number, text: string) {
    super(sentenceOf(text))
    this.code = code
  }
}

export const UNKNOWN_TABLE = 60

const CODES: Record<number, [WarehouseError['code'], string]> = {
  16: ['table_changed', 'The table is not as the service made it.'],
  53: ['table_changed', 'The table is not as the service made it.'],
  60: ['table_changed', 'The table was dropped while it was used.'],
  81: ['not_found', 'The database does not exist.'],
  158: ['timed_out', 'A limit of the user is reached.'],
  159: ['timed_out', 'The statement took too long.'],
  164: ['read_only', 'The user or the server is read-only.'],
  192: ['credentials_refused', 'ClickHouse does not know the user.'],
  193: ['credentials_refused', 'ClickHouse refused the password.'],
  194: ['credentials_refused', 'ClickHouse requires a password.'],
  202: ['unreachable', 'The server has too many queries at the moment.'],
  241: ['unreachable', 'The server has no memory left at the moment.'],
  242: ['read_only', 'The table is read-only.'],
  243: ['disk_full', 'The disk of the server is full. Free some space; loads continue by themselves.'],
  252: ['unreachable', 'The server is merging too many parts at the moment.'],
  497: ['permission_missing', 'The user has no permission for this. Grant it, or use another user.'],
  516: ['credentials_refused', 'ClickHouse refused the user name or the password.'],
}

export function clickHouseProblem(error: unknown, place: string): WarehouseError {
  if (!(error instanceof ClickHouseError)) return problemOf(error, place)
  const [code, sentence] = CODES[error.code] ?? ['failed', 'The statement failed.']
  return { code, message: `${place}: ${sentence} ClickHouse says: ${error.message}` }
}

/** Without the number, the name and the version that ClickHouse adds, and without the rows that it quotes. */
function sentenceOf(text: string): string {
  const [first = ''] = text.replace(/^Code: \d+\. DB::Exception: (Received from .*?DB::Exception: )?/, '').split('\n')
  return first
    .replace(/\s*\(version [^)]*\)\s*$/, '')
    .replace(/:? ?\(?while (read|executing|parsing|converting)[\s\S]*$/i, '')
    .slice(0, 400)
}
