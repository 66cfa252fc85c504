// Checks of what the programs of packages.test.ts sent and printed.

import { type KeyObject, verify } from 'node:crypto'

export function verifyAssertion(form: URLSearchParams | undefined, publicKey: KeyObject): boolean {
  const [header = '', claims = '', signature = ''] = form?.get('client_assertion')?.split('.') ?? []
  const key = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const
  return verify('sha256', Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url'))
}

/** Node.js 18 prints a warning that its fetch is experimental. */
export function withoutFetchWarning(stderr: string): string {
  return stderr.replace(/^\(node:\d+\) ExperimentalWarning: The Fetch API is an experimental feature.*\n\(Use .*\n/m, '')
}
