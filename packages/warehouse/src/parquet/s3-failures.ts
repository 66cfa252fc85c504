// What responses of S3-compatible stores mean for a load.

import { WarehouseProblem } from '../failure.ts'
import type { HttpAnswer } from '../http/request.ts'
import type { WarehouseError } from '../warehouse.ts'

/** The permission that a request needs, in the words of AWS. */
const PERMISSIONS: Record<string, string> = {
  GET: 's3:GetObject and s3:ListBucket',
  HEAD: 's3:GetObject and s3:ListBucket',
  PUT: 's3:PutObject',
  DELETE: 's3:DeleteObject',
}
const CODES: Record<string, [WarehouseError['code'], string]> = {
  InvalidAccessKeyId: ['credentials_refused', 'The store does not know the access key.'],
  // As versitygw says it, with status 404.
  XAdminUserNotFound: ['credentials_refused', 'The store does not know the access key.'],
  SignatureDoesNotMatch: ['credentials_refused', 'The secret access key is wrong.'],
  RequestTimeTooSkewed: ['credentials_refused', 'The clock of this machine differs from that of the store. Correct the clock.'],
  ExpiredToken: ['credentials_refused', 'The access key has expired.'],
  NoSuchBucket: ['not_found', 'The bucket does not exist.'],
  PermanentRedirect: ['not_found', 'The bucket is in another region. Set "region" to that of the bucket.'],
  AuthorizationHeaderMalformed: ['not_found', 'The bucket is in another region. Set "region" to that of the bucket.'],
  QuotaExceeded: ['disk_full', 'The quota of the bucket is used up.'],
  XMinioStorageFull: ['disk_full', 'The store is full.'],
}

export function s3Problem(method: string, { status, body }: HttpAnswer, place: string): WarehouseProblem {
  const xml = body.toString('utf8', 0, 4_096)
  const code = /<Code>([^<]{1,100})<\/Code>/.exec(xml)?.[1] ?? ''
  const said = /<Message>([^<]{1,300})<\/Message>/.exec(xml)?.[1]
  const quoted = said === undefined ? ` (status ${status})` : ` The store says: ${said}`
  const known = CODES[code]
  if (known !== undefined) return new WarehouseProblem(known[0], `${place}: ${known[1]}${quoted}`)
  if (status === 401) return new WarehouseProblem('credentials_refused', `${place}: The store refused the access key.${quoted}`)
  if (status === 403)
    return new WarehouseProblem('permission_missing', `${place}: The access key lacks the permission ${PERMISSIONS[method]}.${quoted}`)
  if (status === 404) return new WarehouseProblem('not_found', `${place}: The bucket does not exist.${quoted}`)
  if (status === 301 || status === 307 || status === 308)
    return new WarehouseProblem('not_found', `${place}: The bucket is somewhere else. Set "region" or "endpoint" to where it is.${quoted}`)
  if (status === 507) return new WarehouseProblem('disk_full', `${place}: The store is full.${quoted}`)
  if (status >= 500 || status === 429)
    return new WarehouseProblem('unreachable', `${place}: The store is overloaded or out of order.${quoted}`)
  return new WarehouseProblem('failed', `${place}: The store refused the request.${quoted}`)
}
