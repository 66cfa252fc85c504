// Ids that the world knows resources by: a prefix that tells what it is, and letters that cannot be guessed.

import { randomBytes } from 'node:crypto'

export function newId(prefix: string): string {
  return `${prefix}_${randomBytes(9).toString('base64url').replaceAll(/[-_]/g, 'x')}`
}
