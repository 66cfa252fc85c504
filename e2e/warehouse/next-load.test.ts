// Two nodes on one PostgreSQL store: both know when a warehouse is loaded next, although only one of them makes its loads.

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

test('every node reports the time of the next load, and none after it', async (t) => {
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
  const beforeMs = Date.now()
  for (const [at, node] of cluster.nodes.entries()) assert.equal((await send(node, 3, `m${at}`)).status, 200)
  const afterMs = Date.now()
  const isScheduled = ({ nextAttemptAt }: Health): boolean => nextAttemptAt !== null && Date.parse(nextAttemptAt) >= beforeMs + EVERY_MS / 2
  const scheduled = await eventually(health, (all) => all.every(isScheduled), { what: 'the time of the next load on both nodes' })
  for (const { nextAttemptAt } of scheduled) {
    const atMs = Date.parse(nextAttemptAt ?? '')
    // The report of the other node is up to two heartbeats old.
    assert.ok(atMs >= beforeMs + EVERY_MS - 1_000 && atMs <= afterMs + 1.5 * EVERY_MS, nextAttemptAt ?? '')
  }
  for (const node of cluster.nodes) await node.api(`/destinations/${id}/load`, { method: 'POST' })
  const isOver = ({ pending, nextAttemptAt }: Health): boolean => pending === 0 && nextAttemptAt === null
  await eventually(health, (all) => all.every(isOver), { what: 'the end of the load on both nodes', deadlineMs: 60_000 })
})
