// Two nodes on one PostgreSQL store: both know when a warehouse is loaded next, and both accept requests for a load, although only one of them makes its loads.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { type Node, send, startCluster } from '../system/nodes-in-process.ts'
import { eventually } from '../system/signals.ts'

const EVERY_MS = 600_000

interface Health {
  pending: number
  nextAttemptAt: string | null
}

test('every node reports the time of the next load and accepts requests for a load, and no node reports a time after the load', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-lakes-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'main'))
  await using cluster = await startCluster({ nodes: 2, env: { SWITCHYARD_LAKE_DIR: folder } })
  const [first, second] = cluster.nodes as [Node, Node]
  const { data: sources } = await first.api<{ data: { id: string }[] }>('/sources')
  const body = {
    type: 'warehouse',
    name: 'Lake',
    sourceIds: sources.map(({ id }) => id),
    warehouse: { engine: 'parquet', url: pathToFileURL(join(folder, 'main')).href },
    load: { everyMs: EVERY_MS },
  }
  const { id } = await first.api<{ id: string }>('/destinations', { method: 'POST', body })
  const isKnown = (node: Node): Promise<boolean> =>
    node.api(`/destinations/${id}`).then(
      () => true,
      () => false,
    )
  await eventually(
    () => isKnown(second),
    (known) => known,
    { what: 'the destination on the other node' },
  )
  const health = (): Promise<Health[]> => Promise.all(cluster.nodes.map((node) => node.api<Health>(`/destinations/${id}/health`)))
  const isScheduled = (beforeMs: number): ((health: Health) => boolean) => {
    return ({ nextAttemptAt }) => nextAttemptAt !== null && Date.parse(nextAttemptAt) >= beforeMs + EVERY_MS / 2
  }
  const isOver = ({ pending, nextAttemptAt }: Health): boolean => pending === 0 && nextAttemptAt === null
  // One of them does not make the loads.
  for (const [at, asked] of cluster.nodes.entries()) {
    const beforeMs = Date.now()
    for (const [from, node] of cluster.nodes.entries()) assert.equal((await send(node, 3, `m${at}-${from}`)).status, 200)
    const afterMs = Date.now()
    const all = await eventually(health, (each) => each.every(isScheduled(beforeMs)), { what: 'the time of the next load on both nodes' })
    for (const { nextAttemptAt } of all) {
      const atMs = Date.parse(nextAttemptAt ?? '')
      // The report of the other node is up to two heartbeats old.
      assert.ok(atMs >= beforeMs + EVERY_MS - 1_000 && atMs <= afterMs + 1.5 * EVERY_MS, nextAttemptAt ?? '')
    }
    await asked.api(`/destinations/${id}/load`, { method: 'POST' })
    const what = `the end of the load that node ${at + 1} was asked for, on both nodes`
    await eventually(health, (each) => each.every(isOver), { what, deadlineMs: 60_000 })
  }
})
