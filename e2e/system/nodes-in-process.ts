// Several nodes of the service in this process, which share a new PostgreSQL database.
//
//   await using cluster = await startCluster(t, { nodes: 2 })
//   await cluster.nodes[0].api('/ledger')
//   const other = await cluster.start()                  one more node
//   await send(cluster.nodes[0], 10)                     to the tracking API, from the first source
//   await cluster.nodes[1].close()

import assert from 'node:assert/strict'
import { type App, createApp } from '../../packages/server/src/app.ts'
import { readConfig } from '../../packages/server/src/config.ts'
import { createLog, type Log } from '../../packages/server/src/logging/log.ts'
import { createDatabase, type TestDatabase } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { callControl, TOKEN } from './service.ts'

export const SECRET_KEY = 'the same key for every node of the tests'

export interface Node {
  url: string
  app: App
  api<T = unknown>(path: string, init?: { method?: string; body?: unknown }): Promise<T>
  close(): Promise<void>
}

export interface Cluster extends AsyncDisposable {
  database: TestDatabase
  nodes: Node[]
  start(env?: Record<string, string>): Promise<Node>
}

export async function startCluster({ nodes = 2, env = {} }: { nodes?: number; env?: Record<string, string> } = {}): Promise<Cluster> {
  const database = await createDatabase()
  const cluster: Cluster = {
    database,
    nodes: [],
    async start(more = {}) {
      const node = await startNode(database.url, { ...env, ...more })
      cluster.nodes.push(node)
      return node
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(cluster.nodes.map((node) => node.close()))
      await database.drop()
    },
  }
  try {
    await Promise.all(Array.from({ length: nodes }, () => cluster.start()))
  } catch (error) {
    await cluster[Symbol.asyncDispose]()
    throw error
  }
  return cluster
}

export async function startNode(url: string, env: Record<string, string> = {}, log: Log = createLog('silent')): Promise<Node> {
  const read = readConfig({
    SWITCHYARD_PORT: '0',
    SWITCHYARD_STORE: url,
    SWITCHYARD_SECRET_KEY: SECRET_KEY,
    SWITCHYARD_ADMIN_TOKEN: TOKEN,
    ...env,
  })
  if (read.kind !== 'config') throw new Error(JSON.stringify(read))
  const app = await createApp(read.config, log)
  return { url: app.url, app, api: (path, init) => callControl(app.url, TOKEN, path, init), close: async () => void (await app.close()) }
}

/** The messages of one batch, named by `name` and their index. */
export async function send({ app }: Node, count: number, name = 'm'): Promise<Response> {
  const [writeKey] = app.firstSource?.writeKeys ?? assert.fail()
  const batch = Array.from({ length: count }, (_, at) => ({ type: 'track', userId: 'u', event: 'Tested', messageId: `${name}-${at}` }))
  return fetch(`${app.url}/v1/batch`, { method: 'POST', body: JSON.stringify({ writeKey, batch }) })
}
