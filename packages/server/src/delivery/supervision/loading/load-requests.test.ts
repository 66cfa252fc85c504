// Requests for loads on two nodes of which only one makes the loads, with a store in memory and notifications that the test controls.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { LOAD_REQUESTS } from '../../../store/port/warehouse-tables.ts'
import { type DocumentStore, type Store, StoreUnavailable } from '../../../store/store.ts'
import { LoadRequests } from './load-requests.ts'

class Rig {
  readonly stored = new Map<string, { key: string; atMs: number; doc: JsonObject }>()
  /** Whether notifications arrive. */
  notifies = true
  /** The number of the node that makes the loads. */
  owner = 0
  problem: Error | null = null
  readonly asked: { node: number; destinationId: string; request: string; end: () => void }[] = []
  readonly errors: unknown[] = []
  readonly nodes: { requests: LoadRequests; heartbeat: () => void }[] = []
  readonly #onMessage: ((text: string) => void)[] = []
  count = 2

  add(): void {
    const node = this.nodes.length
    let heartbeat = (): void => undefined
    const countNow = (): number => this.count
    const documents = {
      list: async () => {
        if (this.problem !== null) throw this.problem
        return [...this.stored.values()]
      },
      update: async (kind: string, _keys: string[], change: Parameters<DocumentStore['update']>[2]) => {
        assert.equal(kind, LOAD_REQUESTS)
        if (this.problem !== null) throw this.problem
        for (const [key, value] of change(this.stored)) {
          if (value === null) this.stored.delete(key)
          else this.stored.set(key, { key, ...value })
        }
      },
    } as unknown as DocumentStore
    const store = {
      documents,
      configuration: () => ({ destinations: new Map([['dst', { type: 'warehouse' }]]) }) as unknown as ReturnType<Store['configuration']>,
      nodes: {
        get count() {
          return countNow()
        },
        onChange: (listener: () => void) => void (heartbeat = listener),
      },
      channel: {
        publish: (text: string) => {
          for (const [at, receive] of this.#onMessage.entries()) if (this.notifies && at !== node) receive(text)
        },
        onMessage: (listener: (text: string) => void) => void this.#onMessage.push(listener),
      },
    }
    const requests = new LoadRequests({
      store,
      clock: { wallMs: () => 5 },
      loadNow: (destinationId, request, onGathered) => {
        const isKnown = this.asked.some((each) => each.node === node && each.request === request)
        if (this.owner === node && !isKnown) this.asked.push({ node, destinationId, request, end: onGathered })
      },
      onError: (error) => this.errors.push(error),
    })
    requests.start()
    this.nodes.push({ requests, heartbeat: () => heartbeat() })
  }

  /** What reads and writes has been answered. */
  async settled(): Promise<void> {
    for (let nth = 0; nth < 3; nth++) await new Promise((resolve) => setImmediate(resolve))
  }

  node(at: number): Rig['nodes'][number] {
    return this.nodes[at] ?? assert.fail()
  }
}

function startRig(): Rig {
  const rig = new Rig()
  rig.add()
  rig.add()
  return rig
}

test('a request reaches the node that makes the loads at once, and is stored until its messages are in loads', async () => {
  const rig = startRig()
  await rig.node(1).requests.want('dst')
  await rig.settled()
  assert.deepEqual([rig.asked.map(({ node, destinationId }) => [node, destinationId]), rig.stored.size], [[[0, 'dst']], 1])
  rig.asked[0]?.end()
  await rig.settled()
  assert.equal(rig.stored.size, 0)
})

test('a request whose notification is lost is found with the next heartbeat, also by a node that makes the loads from then on', async () => {
  const rig = startRig()
  rig.notifies = false
  await rig.node(1).requests.want('dst')
  await rig.settled()
  assert.equal(rig.asked.length, 0)
  rig.node(0).heartbeat()
  await rig.settled()
  assert.equal(rig.asked.length, 1)
  // The node dies before the messages are in loads. The other one is alone.
  rig.owner = 1
  rig.count = 1
  rig.node(1).heartbeat()
  await rig.settled()
  assert.deepEqual([rig.asked.map(({ node }) => node), rig.asked[0]?.request], [[0, 1], rig.asked[1]?.request])
})

test('a node that is alone carries out what it forgot while its lease was not valid, and deletes what could not be deleted', async () => {
  const rig = startRig()
  rig.count = 1
  const { requests, heartbeat } = rig.node(0)
  heartbeat()
  await rig.settled()
  rig.owner = -1
  await requests.want('dst')
  rig.owner = 0
  heartbeat()
  await rig.settled()
  assert.equal(rig.asked.length, 1)
  rig.problem = new StoreUnavailable('away')
  rig.asked[0]?.end()
  await rig.settled()
  rig.problem = null
  heartbeat()
  await rig.settled()
  assert.deepEqual([rig.stored.size, rig.asked.length, rig.errors], [0, 1, []])
})

test('a later request is not deleted by the end of an earlier one', async () => {
  const rig = startRig()
  await rig.node(0).requests.want('dst')
  await rig.node(0).requests.want('dst')
  const [earlier, later] = rig.asked
  earlier?.end()
  await rig.settled()
  assert.equal(rig.stored.get('dst')?.doc['id'], later?.request)
  later?.end()
  await rig.settled()
  assert.equal(rig.stored.size, 0)
})

test('while the store is unavailable a request is refused, and what could not be read or deleted is when it is back', async () => {
  const rig = startRig()
  await rig.node(0).requests.want('dst')
  rig.problem = new StoreUnavailable('away')
  await assert.rejects(rig.node(1).requests.want('dst'), StoreUnavailable)
  rig.asked[0]?.end()
  rig.node(0).heartbeat()
  await rig.settled()
  assert.equal(rig.stored.size, 1)
  rig.problem = null
  rig.count = 1
  rig.node(0).heartbeat()
  await rig.settled()
  assert.deepEqual([rig.stored.size, rig.asked.length, rig.errors], [0, 1, []])
  await Promise.all(rig.nodes.map(({ requests }) => requests.stop()))
})
