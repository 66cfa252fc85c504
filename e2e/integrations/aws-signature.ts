// Stands for AWS: checks the signature (version 4) of a request, from what arrived and from the secret of the key that it names. Written from AWS's
// description of the algorithm, without code of an SDK, so that a request that only its own SDK understands does not pass.

import { createHash, createHmac } from 'node:crypto'
import type { GatewayRequest } from './gateway/recording-gateway.ts'

const ALGORITHM = 'AWS4-HMAC-SHA256'

/** What is wrong with the signature, as a sentence; null if nothing is. `secrets` has the secret of each access key. */
export function signatureProblem({ method, path, headers, bytes }: GatewayRequest, secrets: ReadonlyMap<string, string>): string | null {
  const { authorization = '' } = headers
  const [, keyId = '', scope = '', signedHeaders = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(authorization) ?? []
  if (signature === undefined) return `The request is not signed: ${authorization}`
  const secret = secrets.get(keyId)
  if (secret === undefined) return `There is no access key ${keyId}.`
  const bodyHash = createHash('sha256').update(bytes).digest('hex')
  const { 'x-amz-content-sha256': claimedHash = bodyHash, 'x-amz-date': date = '' } = headers
  if (claimedHash !== bodyHash) return 'The hash of the body is not that of the body.'
  const [name, query = ''] = path.split('?', 2) as [string, string?]
  const canonical = [
    method,
    name,
    canonicalQuery(query),
    ...signedHeaders.split(';').map((header) => `${header}:${(headers[header] ?? '').trim().replaceAll(/ +/g, ' ')}`),
    '',
    signedHeaders,
    claimedHash,
  ].join('\n')
  const toSign = [ALGORITHM, date, scope, createHash('sha256').update(canonical).digest('hex')].join('\n')
  const key = scope.split('/').reduce<Buffer | string>((last, part) => hmac(last, part), `AWS4${secret}`)
  return hmac(key, toSign).toString('hex') === signature ? null : `The signature does not match this request:\n${canonical}`
}

function canonicalQuery(query: string): string {
  return query
    .split('&')
    .filter(Boolean)
    .map((part) => (part.includes('=') ? part : `${part}=`))
    .sort()
    .join('&')
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
