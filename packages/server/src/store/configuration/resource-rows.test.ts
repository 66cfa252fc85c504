// What a node of the previous version sees of a token with limits: PostgreSQL nodes of both versions may share a database for a while.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ControlToken } from '../../model/configuration.ts'
import { createSecretBox } from '../../secrets/secret-box.ts'
import { columnsOf, type TokenRow, tokenOf } from './resource-rows.ts'

const PLAIN: ControlToken = {
  id: 'tok_1',
  name: 'a token',
  role: 'viewer',
  sources: 'all',
  expiresAtMs: null,
  owner: null,
  hash: 'f00d',
  createdAtMs: 7,
}
const box = createSecretBox(Buffer.alloc(32, 1).toString('base64'))

const rowOf = (token: ControlToken): TokenRow => {
  const { created_at: createdAtMs, ...columns } = columnsOf('tokens', token, box) as unknown as TokenRow & { created_at: number }
  return { ...columns, id: token.id, createdAtMs }
}

test('a token without limits is stored as before', () => {
  for (const role of ['viewer', 'admin'] as const) {
    const row = rowOf({ ...PLAIN, role })
    assert.deepEqual(row, { id: 'tok_1', name: 'a token', role, hash: 'f00d', limits: null, createdAtMs: 7 })
    assert.deepEqual(tokenOf(row), { ...PLAIN, role })
  }
})

for (const [what, change] of Object.entries({
  'of an editor': { role: 'editor' },
  'limited to sources': { sources: ['src_1'] },
  'that expires': { expiresAtMs: 5 },
  'of a person': { owner: { personId: 'per_1', subject: 's', email: null } },
} satisfies Record<string, Partial<ControlToken>>)) {
  test(`to a node of the previous version, a token ${what} is a viewer's with the hash of no token`, () => {
    const row = rowOf({ ...PLAIN, ...change })
    assert.equal(row.role, 'viewer')
    assert.doesNotMatch(row.hash, /^[0-9a-f]+$/)
    assert.deepEqual(tokenOf(row), { ...PLAIN, ...change })
  })
}
