import { PostgresServer } from './fixtures/postgres-server.ts'
import { openAt } from './fixtures/temp-store.ts'
import { accept, newWay, tracks, claim } from '../conformance/ground.ts'
const server = await PostgresServer.start()
const s = await openAt(server.url())
const { sourceId, destinationId } = await newWay(s)
const c = await server.client(); const old = await server.client()
await c.query('set search_path=switchyard')
async function measure(label: string) {
  const t: number[] = [], u: number[] = []
  for (let i = 0; i < 60; i++) { let a = performance.now(); await accept(s, sourceId, tracks(1), [destinationId]); t.push(performance.now() - a); a = performance.now(); await claim(s, destinationId, { maxFresh: 5 }); u.push(performance.now() - a) }
  t.sort((a, b) => a - b); u.sort((a, b) => a - b)
  const { rows } = await c.query('EXPLAIN (ANALYZE, BUFFERS) SELECT EXISTS (SELECT FROM nodes WHERE holder = ' + s.membership.holder + ')')
  console.log(label, 'accept median', t[30]!.toFixed(2), 'claim', u[30]!.toFixed(2), rows.map((r: any) => r['QUERY PLAN']).filter((x: string) => /Scan|Buffers|Execution/.test(x)).slice(0, 5).join(' ;; '))
}
await measure('warm'); await measure('fresh')
await old.query('BEGIN ISOLATION LEVEL REPEATABLE READ'); await old.query('SELECT 1 FROM switchyard.nodes')
for (const n of [600, 3000, 25000]) {
  for (let i = 0; i < n; i++) await c.query("UPDATE nodes SET expires_at = now() + interval '10 s'")
  await measure(`after ${n} more beats with an old snapshot`)
}
await s.close(); await c.end(); await old.end(); await server.dispose()
