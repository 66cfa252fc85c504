// Public ids of resources: a prefix for the kind, and random characters that cannot be guessed.

import { randomBytes } from 'node:crypto'

export function newId(prefix: string): string {
  return `${prefix}_${randomBytes(9).toString('base64url').replaceAll(/[-_]/g, 'x')}`
}
