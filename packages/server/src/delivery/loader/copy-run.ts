// Lists the tables of a lake, or copies the files of one of them to this machine.

import type { Warehouse } from '@switchyard/warehouse'
import type { CopyRequest } from '../link/copy-message.ts'

export async function runCopy({ copying }: Pick<Warehouse, 'copying'>, request: CopyRequest, signal: AbortSignal): Promise<object> {
  if (copying === undefined) throw new Error('The warehouse has no files.')
  try {
    return request.kind === 'tables' ? await copying.tables(request.schemas, signal) : await copying.copy(request, signal)
  } catch (error) {
    throw signal.aborted ? new Error('The bucket took longer than a load may take. What was fetched is kept for the next query.') : error
  }
}
