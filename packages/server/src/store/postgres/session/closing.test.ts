import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { accept, claimOne, newSourceAndDestination, settlementOf, tracks } from '../../conformance/fixtures.ts'
import { createDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'

test('a network that drops all packets does not keep the store from closing', async () => {
  const database = await createDatabase()
  const url = new URL(database.url)
  const { port, hostname } = url
  const sockets = new Set<Socket>()
  let swallows = false
  const between = createServer((socket) => {
    const server = connect(Number(port), hostname)
    for (const [from, to] of [
      [socket, server],
      [server, socket],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('close', () => to.destroy())
      from.on('data', (chunk) => swallows || to.write(chunk))
    }
  })
  between.listen(0, '127.0.0.1')
  await once(between, 'listening')
  url.port = String((between.address() as AddressInfo).port)
  const store = await openAt(url.href, { statementMs: 1_500 })
  try {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    await accept(store, sourceId, tracks(1), [destinationId])
    const { shipment } = await claimOne(store, destinationId)
    swallows = true
    const settled = store.delivery.settle(settlementOf([shipment], 'delivered')).catch(() => {})
    const accepted = accept(store, sourceId, tracks(1), [destinationId]).catch(() => {})
    await store.membership.heartbeat().catch(() => {})
    const started = performance.now()
    await store.close()
    await Promise.all([settled, accepted])
    const tookMs = performance.now() - started
    assert.ok(tookMs < 60_000, `it took ${tookMs} ms`)
  } finally {
    await store.close()
    for (const socket of sockets) socket.destroy()
    between.close()
    await database.drop()
  }
})
