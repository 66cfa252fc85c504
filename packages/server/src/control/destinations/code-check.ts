// The check of a transformation's code when it is saved: it must load in the sandbox, and export a function.

import { invalidField } from '../../api/schema.ts'
import { KINDS } from '../../destinations/kinds.ts'
import type { ApiError } from '../../errors.ts'
import type { Destination, DestinationType } from '../../store/store.ts'
import type { CheckCode } from '../routes/route.ts'

/** Returns why the code is rejected, or null. The code of a transformation that is not changed is not checked again. */
export async function codeProblem(
  checkCode: CheckCode | undefined,
  type: DestinationType,
  settings: object,
  before: Destination | undefined,
): Promise<ApiError | null> {
  const kind = KINDS[type]
  const transformation = kind.transformation(settings)
  if (checkCode === undefined || transformation === null || transformation.code === (before && kind.transformation(before))?.code)
    return null
  const found = await checkCode(transformation.code)
  if (found === null) return null
  const { line, column, message } = found
  const place = column === null ? `line ${line}` : `line ${line}, column ${column}`
  return invalidField('transformation.code', line === null ? message : `has an error in ${place}: ${message}`)
}

/** Throws if the code is rejected. */
export async function assertLoadable(...given: Parameters<typeof codeProblem>): Promise<void> {
  const problem = await codeProblem(...given)
  if (problem !== null) throw problem
}
