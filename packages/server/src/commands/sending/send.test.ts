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

async function waitingFor(...ids: string[]): Promise<{ waitMs: number; asked: string[] }> {
  const asked: string[] = []
  const get = async (path: string): Promise<JsonObject> => {
    const id = path.replace('/api/destinations/', '')
    asked.push(id)
    const found = DESTINATIONS[id]
    if (found === undefined) throw new CommandProblem('The service answered 404.')
    return found
  }
  const pending = ids.map((destinationId) => ({ destinationId }))
  return { waitMs: await waitFor({ get }, pending), asked }
}

test('send --wait waits until the next load of a warehouse has ended, unless it is far away', async () => {
  for (const ids of [[], ['hook'], ['hour']]) assert.deepEqual(await waitingFor(...ids), { waitMs: 60_000, asked: ids })
  assert.equal((await waitingFor('hook', 'minute')).waitMs, 120_000)
  assert.equal((await waitingFor('minute', 'halfminute', 'hour')).waitMs, 120_000)
  assert.deepEqual(await waitingFor('minute', 'minute'), { waitMs: 120_000, asked: ['minute'] }, 'each destination is read once')
})

test('send --wait does not wait longer for a warehouse that is paused or disabled, or whose settings cannot be read', async () => {
  for (const id of ['paused', 'disabled', 'deleted']) assert.equal((await waitingFor(id)).waitMs, 60_000, id)
  assert.equal((await waitingFor('deleted', 'paused', 'halfminute')).waitMs, 90_000)
})
