// A tool that accepts each refresh token once: the service stores the new one, so that the destination still works after a restart.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startInProcess } from '../system/in-process.ts'
import { type Receiver, startReceiver } from '../system/receiver.ts'
import { eventually } from '../system/signals.ts'
import { wire } from '../system/wiring.ts'

interface Audited {
  actor: object
  action: string
  before: object | null
  after: object | null
}

interface Tool {
  receiver: Receiver
  /** The refresh tokens that were used. */
  used: string[]
  /** Makes the current access token invalid. */
  expire(): void
}

async function startTool(): Promise<Tool> {
  const used: string[] = []
  let isExpired = true
  const receiver = await startReceiver(({ path, headers, bytes }) => {
    if (path === '/send') return { status: !isExpired && headers['authorization'] === `Bearer access-token-${used.length}` ? 200 : 401 }
    const { refreshToken } = JSON.parse(bytes.toString()) as { refreshToken: string }
    if (refreshToken !== `refresh-token-${used.length}`) return { status: 400 }
    used.push(refreshToken)
    isExpired = false
    const body = JSON.stringify({ accessToken: `access-token-${used.length}`, refreshToken: `refresh-token-${used.length}` })
    return { headers: { 'content-type': 'application/json' }, body }
  })
  return {
    receiver,
    used,
    expire() {
      isExpired = true
    },
  }
}

test('a refresh token that replaces another one is stored: after a restart it is used, and no log or audit entry contains it', async () => {
  const tool = await startTool()
  await using receiver = tool.receiver
  const { used } = tool
  const log: string[] = []
  await using service = await startInProcess({
    integrations: new URL('./rotating-tokens/', import.meta.url),
    onLog: (line) => log.push(line),
  })
  const renewals = async (): Promise<Audited[]> => (await service.api<{ data: Audited[] }>('/audit?action=destination.renew-tokens')).data
  const wiring = await wire(service, {
    type: 'integration',
    integration: 'actions-webhook-extensible',
    settings: {
      tokenUrl: receiver.url,
      oauth: { clientId: new URL(receiver.url).origin, clientSecret: 'client-secret', refreshToken: 'refresh-token-0' },
    },
    subscriptions: [
      { name: 'Send', action: 'send', subscribe: 'type = "track"', mapping: { url: receiver.url, method: 'POST' }, enabled: true },
    ],
  })
  const deliver = async (): Promise<void> => assert.equal((await wiring.settled(await wiring.track())).state, 'delivered')

  await deliver()
  assert.deepEqual(used, ['refresh-token-0'])
  const [entry] = await eventually(renewals, ({ length }) => length > 0)
  assert.deepEqual(
    [entry?.actor, entry?.before, entry?.after],
    [{ id: 'service', name: 'service', type: 'service', owner: null }, null, { changedSecrets: ['settings.oauth'] }],
  )
  // The destination was defined again, with tokens that are valid.
  await deliver()
  assert.equal(used.length, 1)

  tool.expire()
  await service.restart()
  await deliver()
  await deliver()
  assert.deepEqual(used, ['refresh-token-0', 'refresh-token-1'])
  // Stored when the service stops, at the latest.
  await service.restart()
  assert.equal((await renewals()).length, 2)
  await deliver()
  assert.equal(used.length, 2)

  const { version } = await service.api<{ version: number }>(`/destinations/${wiring.destinationId}`)
  assert.equal(version, 1)
  assert.match(log.join(''), /sent with \(hidden\)/)
  const shown = [log, await service.api('/audit?limit=1000'), await service.api(`/destinations/${wiring.destinationId}`)]
  assert.doesNotMatch(JSON.stringify(shown), /(?:access|refresh)-token-\d|client-secret/)
})
