// What one node has decided holds on the other from its next request on, because both ask the database: a logout ends the session everywhere,
// and a replay counts what was sent before, whichever node created the job and whichever node sends its messages.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startReceiver } from '../system/receiver.ts'
import { callControl, TOKEN, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { type Cluster, type Node, startCluster } from './cluster.ts'

const MESSAGES = 30

interface Job {
  id: string
  state: string
  replayed: number
  skippedReasons: Record<string, number>
  outcomes: { pending: number; delivered: number }
}

let cluster: Cluster
let nodes: { here: Node; there: Node }
before(async () => {
  cluster = await startCluster({ nodes: 2 })
  nodes = { here: cluster.node(1), there: cluster.node(2) }
})
after(() => cluster[Symbol.asyncDispose]())

test('after a logout on one node, the other rejects a copy of the cookie from the next request on', async () => {
  const { here, there } = nodes
  const [ended, other] = [await logIn(here), await logIn(here)]
  // Both nodes have used the session, so that one that remembered this would go on accepting it.
  for (const node of [here, there]) assert.equal(await statusWith(node, ended), 200, node.name)
  const logout = await fetch(`${here.url}/api/logout`, { method: 'POST', headers: { cookie: ended, origin: here.url } })
  assert.equal(logout.status, 204, await logout.text())
  // No waiting and no second try: nothing is cached.
  for (const node of [there, here]) assert.equal(await statusWith(node, ended), 401, node.name)
  for (const node of [there, here]) assert.equal(await statusWith(node, other), 200, `${node.name}, another session of the same token`)
})

test('a replay with includeReplayed sends every message once more, and one without it none, whichever node creates the job', async () => {
  const { here, there } = nodes
  await using receiver = await startReceiver()
  const destinationId = await here.service.destination({ urls: [receiver.url], maxInFlight: 4 })
  await cluster.known(`/destinations/${destinationId}`)
  const ids = Array.from({ length: MESSAGES }, (_, nth) => `m-${nth}`)
  for (const [at, node] of [here, there].entries())
    assert.equal((await node.service.send(ids.filter((_, nth) => nth % 2 === at).map((id) => track(id)))).status, 200)
  await here.service.settled(MESSAGES)
  const replay = async (node: Node, includeReplayed: boolean): Promise<Job> => {
    const body = { destinationId, states: ['delivered'], includeReplayed }
    const { id } = await callControl<Job>(node.url, TOKEN, '/replays', { method: 'POST', body })
    return await eventually(
      () => callControl<Job>(node.url, TOKEN, `/replays/${id}`),
      ({ state, outcomes }) => state === 'finished' && outcomes.pending === 0,
      { what: `the replay job ${id} has finished` },
    )
  }
  const assertArrived = (times: number): void => {
    const counts = ids.map((id) => receiver.byMessageId.get(id)?.length)
    assert.deepEqual(counts, Array<number>(MESSAGES).fill(times))
  }
  assertArrived(1)

  const first = await replay(here, false)
  assert.deepEqual([first.replayed, first.outcomes.delivered], [MESSAGES, MESSAGES])
  assertArrived(2)
  const second = await replay(there, false)
  assert.deepEqual([second.replayed, Object.keys(second.skippedReasons)], [0, ['already_replayed']])
  let arrived = 2
  for (const node of [here, there]) {
    const again = await replay(node, true)
    assert.deepEqual([again.replayed, again.outcomes.delivered], [MESSAGES, MESSAGES])
    assertArrived(++arrived)
    const none = await replay(node === here ? there : here, false)
    assert.deepEqual([none.replayed, Object.keys(none.skippedReasons)], [0, ['already_replayed']])
    assertArrived(arrived)
  }
})

async function logIn(node: Node): Promise<string> {
  const response = await fetch(`${node.url}/api/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: TOKEN }),
  })
  assert.equal(response.status, 200, await response.text())
  return response.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
}

async function statusWith(node: Node, cookie: string): Promise<number> {
  const response = await fetch(`${node.url}/api/session`, { headers: { cookie } })
  await response.text()
  return response.status
}
