// Counts over time when several nodes add to them at once. The conformance suite covers what every adapter does.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { booksOf } from '../../history/books.ts'
import type { StatRow } from '../../store.ts'
import { type BareNode, openBareNode } from '../fixtures/bare-node.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { PostgresUnavailable } from '../session/connection.ts'
import type { Database } from '../session/database.ts'
import { bookRows } from './book-rows.ts'
import { createStats } from './stats.ts'

const AT_MS = 20_000 * 86_400_000
const MINUTE_MS = 60_000

suite('counts over time', () => {
  let database: TestDatabase
  let nodes: BareNode[]
  before(async () => {
    database = await createDatabase()
    nodes = [await openBareNode(database.url, 1), await openBareNode(database.url, 2), await openBareNode(database.url, 3)]
  })
  after(async () => {
    for (const node of nodes) await node.close()
    await database.drop()
  })
  const series = (subject: string) =>
    booksOf(bookRows((nodes[0] as BareNode).context)).stats({
      kind: 'source',
      subject,
      fromMs: AT_MS,
      toMs: AT_MS + 10 * MINUTE_MS,
      stepMs: MINUTE_MS,
    })

  test('nodes that add to the same minutes at once, in whatever order, lose nothing', async () => {
    const subjects = ['a', 'B', 'ä', '\u{1f600}', 'c\0d', 'Z']
    const all = subjects.flatMap((subject) =>
      [0, 1, 2].map(
        (minute): StatRow => ({ kind: 'source', subject, atMs: AT_MS + minute * MINUTE_MS, counts: { accepted: 1, [`n.${minute}`]: 2 } }),
      ),
    )
    const backwards = all.map((_, at) => all.at(-1 - at) ?? assert.fail())
    const rounds = 30
    await Promise.all(
      nodes.map(async ({ context }, nth) => {
        const add = createStats(context)
        for (let round = 0; round < rounds; round++) await add((round + nth) % 2 === 0 ? all : backwards)
      }),
    )
    const times = rounds * nodes.length
    for (const subject of subjects) {
      assert.deepEqual(
        await series(subject),
        [0, 1, 2].map((minute) => ({ atMs: AT_MS + minute * MINUTE_MS, counts: { accepted: times, [`n.${minute}`]: 2 * times } })),
        subject,
      )
    }
  })

  for (const committed of [true, false]) {
    test(`an addition that was ${committed ? '' : 'not '}committed before the connection was lost is added once`, async () => {
      const node = nodes[0] as BareNode
      const subject = `mayHaveCommitted ${committed}`
      let isBroken = true
      const broken: Pick<Database, 'transaction' | 'query'> = {
        query: (...args) => node.context.database.query(...args),
        async transaction(work, options) {
          if (!isBroken) return node.context.database.transaction(work, options)
          const uncertain = new PostgresUnavailable('the connection was lost', true)
          if (committed) await node.context.database.transaction(work, options)
          throw uncertain
        },
      }
      const add = createStats({ ...node.context, database: broken as Database })
      const row: StatRow = { kind: 'source', subject, atMs: AT_MS, counts: { accepted: 7 } }
      await add([row])
      await assert.rejects(add([row]), PostgresUnavailable, 'the next one does not start before that is resolved')
      isBroken = false
      await add([{ ...row, counts: { accepted: 100 } }])
      await add([])
      assert.deepEqual(await series(subject), [{ atMs: AT_MS, counts: { accepted: 107 } }])
    })
  }
})
