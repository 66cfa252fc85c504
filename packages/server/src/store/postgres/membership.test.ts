// Who is alive, as one node sees it: what happens when the others have given it up.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDatabase } from './fixtures/postgres-server.ts'
import { openAt } from './fixtures/temp-store.ts'

test('a node that was given up comes back once, however many ask at that moment, as another holder', async () => {
  const database = await createDatabase()
  const store = await openAt(database.url)
  try {
    const before = store.membership.holder
    // Each has a connection of its own to ask on.
    await Promise.all(Array.from({ length: 5 }, () => store.check()))
    await database.query('DELETE FROM switchyard.nodes')
    const answers = await Promise.all(Array.from({ length: 5 }, () => store.check()))
    assert.ok(answers.every(({ ok }) => ok))
    const nodes = await database.query<{ num: number; holder: string }>('SELECT num, holder::text AS holder FROM switchyard.nodes')
    assert.deepEqual(nodes, [{ num: store.membership.num, holder: store.membership.holder }])
    assert.notEqual(store.membership.holder, before)
  } finally {
    await store.close()
    await database.drop()
  }
})
