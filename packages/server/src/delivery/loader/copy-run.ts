// Lists the tables of a lake, or copies the files of one to this machine.

import type { Warehouse } from '@switchyard/warehouse'
import type { CopyRequest } from '../link/copy-message.ts'

export async function runCopy({ copying }: Pick<Warehouse, 'copying'>, request: CopyRequest): Promise<object> {
  if (copying === undefined) throw new Error('The warehouse has no files.')
  return request.kind === 'tables' ? copying.tables(request.schemas) : copying.copy(request)
}
