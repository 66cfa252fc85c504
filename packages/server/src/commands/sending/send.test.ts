import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { CommandProblem } from '../line/command.ts'
import { waitFor } from './send.ts'

const ACTIVE = { enabled: true, paused: false }
const DESTINATIONS: Readonly<Record<string, JsonObject>> = {
  hook: ACTIVE,
  halfminute: { ...ACTIVE, load: { everyMs: 30_000 } },
  minute: { ...ACTIVE, load: { everyMs: 60_000 } },
  hour: { ...ACTIVE, load: { everyMs: 3_600_000 } },
  paused: { ...ACTIVE, paused: true, load: { everyMs: 600_000 } },
  disabled: { ...ACTIVE, enabled: false, load: { everyMs: 600_000 } },
}

interface Waited {
  waitMs: number
  asked: string[]
  loaded: string[]
}

async function waitingFor(ids: string[], mayLoad = true): Promise<Waited> {
  const [asked, loaded]: [string[], string[]] = [[], []]
  const get = async (path: string): Promise<JsonObject> => {
    const id = path.replace('/api/destinations/', '')
    asked.push(id)
    const found = DESTINATIONS[id]
    if (found === undefined) throw new CommandProblem('The service answered 404.')
    return found
  }
  const post = async (path: string): Promise<JsonObject> => {
    if (!mayLoad) throw new CommandProblem('The service answered 403.')
    loaded.push(path.replace(/^\/api\/destinations\/(.*)\/load$/, '$1'))
    return {}
  }
  const pending = ids.map((destinationId) => ({ destinationId }))
  return { waitMs: await waitFor({ get, post }, pending), asked, loaded }
}

test('send --wait waits until the next load of a warehouse has ended, unless it is far away', async () => {
  for (const ids of [[], ['hook'], ['hour']]) assert.equal((await waitingFor(ids)).waitMs, 60_000)
  assert.equal((await waitingFor(['hook', 'minute'])).waitMs, 120_000)
  assert.equal((await waitingFor(['minute', 'halfminute', 'hour'])).waitMs, 120_000)
  const { waitMs, asked } = await waitingFor(['minute', 'minute'])
  assert.deepEqual([waitMs, asked], [120_000, ['minute']], 'each destination is read once')
})

test('send --wait does not wait longer for a warehouse that is paused or disabled, or whose settings cannot be read', async () => {
  for (const id of ['paused', 'disabled', 'deleted']) assert.equal((await waitingFor([id])).waitMs, 60_000, id)
  assert.equal((await waitingFor(['deleted', 'paused', 'halfminute'])).waitMs, 90_000)
})

test('send --wait asks active warehouses for a load, and waits for the next load if the token does not allow that', async () => {
  const ids = ['hook', 'deleted', 'paused', 'minute', 'disabled', 'hour', 'minute']
  assert.deepEqual((await waitingFor(ids)).loaded, ['minute', 'hour'])
  assert.deepEqual(await waitingFor(['minute', 'halfminute'], false), { waitMs: 120_000, asked: ['minute', 'halfminute'], loaded: [] })
})
