// Who sees signatures. A receiver trusts whatever is signed, so it must not be possible to have something signed through the control API.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { freePort } from '../../packages/server/src/store/fixtures/free-port.ts'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Receiver, startReceiver } from '../system/receiver.ts'
import { callControl } from '../system/service.ts'
import { type Delivery, wire } from '../system/wiring.ts'

const SECRETS = { sharedSecret: 'a secret', signingSecrets: ['whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cyE='] }
const NAMES = ['X-Signature', 'webhook-signature'] as const

let service: InProcessService
let receiver: Receiver
let viewerToken: string

before(async () => {
  service = await startInProcess()
  receiver = await startReceiver()
  const body = { name: 'viewer', role: 'viewer' }
  viewerToken = (await service.api<{ token: string }>('/tokens', { method: 'POST', body })).token
})

after(async () => {
  await service[Symbol.asyncDispose]()
  await receiver.close()
})

function signatures({ request }: Pick<Delivery, 'request'>): (string | undefined)[] {
  return NAMES.map((name) => request?.headers[name])
}

async function asViewer({ id }: Delivery): Promise<(string | undefined)[]> {
  return signatures(await callControl<Delivery>(service.url, viewerToken, `/deliveries/${id}`))
}

/** A URL on which nothing listens. */
async function deadUrl(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`
}

describe('The signatures of a delivery', () => {
  test('are not computed before it is sent', async () => {
    const wiring = await wire(service, { urls: [receiver.url], paused: true, ...SECRETS })
    const waiting = await wiring.delivery(await wiring.track(), () => true)
    assert.deepEqual(signatures(waiting), ['(added when sent)', '(added when sent)'])
    assert.deepEqual(await asViewer(waiting), ['(hidden)', '(hidden)'])
  })

  test('are shown to an admin as they were sent, and not to a viewer', async () => {
    const wiring = await wire(service, { urls: [receiver.url], ...SECRETS })
    const id = await wiring.track()
    const sent = await wiring.settled(id)
    const [arrival] = receiver.byMessageId.get(id) ?? []
    assert.equal(sent.request?.note, null)
    assert.deepEqual(
      signatures(sent),
      NAMES.map((name) => arrival?.headers[name.toLowerCase()]),
    )
    assert.deepEqual(await asViewer(sent), ['(hidden)', '(hidden)'])
  })

  test('are not computed with a secret that the request was not signed with', async () => {
    const wiring = await wire(service, { urls: [receiver.url], ...SECRETS })
    const id = await wiring.track()
    await wiring.settled(id)
    await wiring.change({ sharedSecret: 'another' })
    const changed = await wiring.settled(id)
    assert.match(changed.request?.note ?? '', /^The destination was changed at /)
    assert.deepEqual(signatures(changed), ['(not shown)', '(not shown)'])
  })

  test('are not computed for a batch of which only a part is still stored', async () => {
    const wiring = await wire(service, { urls: [receiver.url], batch: { size: 2, lingerMs: 60_000 }, ...SECRETS })
    const [first, second] = [`${wiring.sourceId}-1`, `${wiring.sourceId}-2`]
    const call = (messageId: string): object => ({ type: 'track', userId: `u-${messageId}`, event: 'Tested', messageId })
    await wiring.send([call(first), call(second)])
    await wiring.settled(second)
    await service.api('/deletions', { method: 'POST', body: { userIds: [`u-${first}`], sourceIds: [wiring.sourceId] } })
    const left = await wiring.delivery(second, ({ request }) => request?.note !== null)
    assert.deepEqual(signatures(left), ['(not shown)', '(not shown)'])
  })

  test('are not computed if the request cannot have been sent', async () => {
    const wiring = await wire(service, { urls: [await deadUrl()], ...SECRETS })
    const refused = await wiring.attempted(await wiring.track(), 1)
    assert.equal(refused.attempts[0]?.reason, 'connection_refused')
    assert.match(refused.request?.note ?? '', /The receiver did not answer, .* its signatures are not shown\.$/)
    assert.deepEqual(signatures(refused), ['(not shown)', '(not shown)'])
  })
})

test('the test of a destination shows the signatures that it sent, and none if nothing could be sent', async () => {
  const wiring = await wire(service, { urls: [`${receiver.url}shown`], ...SECRETS })
  const run = (): Promise<Delivery> => service.api(`/destinations/${wiring.destinationId}/test`, { method: 'POST' })
  const answered = signatures(await run())
  const arrival = receiver.arrivals.find(({ path }) => path === '/shown')
  assert.deepEqual(
    answered,
    NAMES.map((name) => arrival?.headers[name.toLowerCase()]),
  )
  await wiring.change({ urls: [await deadUrl()] })
  assert.deepEqual(signatures(await run()), ['(not shown)', '(not shown)'])
})
