// A caller who is limited to sources gets no hint by time: about a message or a delivery of another source, no contents and no attempts are read.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type HistoryRows, historyReads } from './history.ts'

const OWN = 'src_own'
const OTHER = 'src_other'

/** Rows with one segment of the other source. Reading anything that depends on its size fails. */
function rowsWithOne(): { rows: HistoryRows<number>; read: string[] } {
  const read: string[] = []
  const answers: Record<string, (...args: never[]) => unknown> = {
    parseId: (id: string) => (/^\d+-\d+$/.test(id) ? { row: Number(id.split('-')[0]), index: 0 } : undefined),
    origins: (ids: readonly number[]) =>
      new Map(ids.filter((id) => id === 7).map((id) => [id, { destination: 1, segment: 7, indexes: [0], replay: false }])),
    heads: (ids: readonly number[]) =>
      ids.filter((id) => id === 7).map((seq) => ({ seq, source: 2, receivedAtMs: 1, count: 1, absent: [] })),
    sources: () => [
      { num: 1, id: OWN },
      { num: 2, id: OTHER },
    ],
    find: (id: string) => (id === 'theirs' ? [{ segment: 7, fingerprint: new Uint32Array(4) }] : []),
    repeats: () => [],
    segments: (ids: readonly number[]) => {
      assert.deepEqual(ids, [], 'contents are read')
      return []
    },
  }
  const rows = new Proxy(
    {},
    {
      get: (_, name) => {
        const answer = answers[String(name)]
        assert.ok(answer !== undefined, `${String(name)} is read`)
        return (...args: never[]) => {
          read.push(String(name))
          return answer(...args)
        }
      },
    },
  )
  return { rows: { messages: rows, deliveries: rows, audit: rows } as never, read }
}

for (const [what, id] of Object.entries({
  'a delivery or message of another source': '7-0',
  'a messageId of another source': 'theirs',
  'an id that never existed': '9-0',
}))
  test(`nothing is read of ${what}`, async () => {
    const { rows, read } = rowsWithOne()
    const history = historyReads<number>((work) => work(rows))
    assert.equal(await history.delivery(id, [OWN]), undefined)
    assert.equal(await history.message(id, [OWN]), undefined)
    assert.deepEqual(await history.trails(id, [OWN]), [])
    assert.deepEqual([...new Set(read)].sort(), ['find', 'heads', 'origins', 'parseId', 'repeats', 'segments', 'sources'])
  })
