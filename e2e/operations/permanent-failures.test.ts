// A receiver that rejects every message permanently has one incident, whichever rule noticed it first, and the incident is closed in the end.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startInProcess } from '../system/in-process.ts'
import { startReceiver } from '../system/receiver.ts'
import { eventually, type Waiting } from '../system/signals.ts'
import { wire } from '../system/wiring.ts'

interface Incident {
  id: string
  rule: string
  state: string
  message: string
  cause: string | null
  closedMessage: string | null
  subject: { id: string }
  actions: { action: string; states: string[] }[]
}

/** Rules are evaluated every 15 seconds. */
const LONG: Waiting = { deadlineMs: 180_000 }
const AT_ONCE = { destination_failing: { openAfterMinutes: 0, closeAfterMinutes: 0 }, deliveries_failed: { notify: true } }

test('a receiver that answers 422 to everything has one open incident, with the cause, until it accepts messages', async () => {
  await using receiver = await startReceiver(() => ({ status: 422, body: '{"error":"the field email is required"}' }))
  await using pager = await startReceiver()
  await using service = await startInProcess()
  const wiring = await wire(service, { urls: [receiver.url] }, { urls: [pager.url], sourceIds: ['system'] })
  await service.api('/alerts', { method: 'PATCH', body: { rules: AT_ONCE } })
  const listed = async (query: string): Promise<Incident[]> => (await service.api<{ data: Incident[] }>(`/incidents?${query}`)).data
  const activeUntil = (passes: (incidents: Incident[]) => boolean): Promise<Incident[]> =>
    eventually(() => listed(`state=active&destinationId=${wiring.destinationId}`), passes, LONG)
  const track = async (times: number): Promise<void> => {
    const ids = await Promise.all(Array.from({ length: times }, () => wiring.track()))
    for (const id of ids) await wiring.settled(id)
  }

  await track(1)
  const [first] = await activeUntil(({ length }) => length > 0)
  assert.equal(first?.rule, 'deliveries_failed', 'one failed delivery does not mean that the destination is failing')

  await track(5)
  const [open, ...others] = await activeUntil((incidents) => incidents.some(({ rule }) => rule === 'destination_failing'))
  assert.deepEqual(others, [], 'the first incident is part of the second')
  assert.deepEqual([open?.state, open?.cause], ['open', 'The receiver answered 422 Unprocessable Entity.'])
  assert.match(open?.message ?? '', /: (\d) of \1 delivery attempts failed\. \1 deliveries failed permanently and will not be retried/)
  assert.deepEqual(
    open?.actions.map(({ action, states }) => [action, states]),
    [['replay', ['failed']]],
  )
  const [absorbed] = await listed('state=closed&rule=deliveries_failed')
  assert.equal(absorbed?.closedMessage, 'This is now part of the incident "Destination Failing" about "receiver".')

  receiver.answer = () => undefined
  await track(20)
  assert.deepEqual(await activeUntil(({ length }) => length === 0), [])
  const [closed] = await listed('state=closed&rule=destination_failing')
  assert.match(closed?.closedMessage ?? '', /has recovered.*The deliveries that failed permanently in that time can be replayed\./)

  // Its incident shows that the rules were evaluated again.
  await service.api('/destinations', {
    method: 'POST',
    body: { name: 'other', sourceIds: [wiring.sourceId], urls: [receiver.url], paused: true },
  })
  await wiring.track()
  await eventually(
    () => listed('state=active'),
    (incidents) => incidents.some(({ rule }) => rule === 'destination_stopped'),
    LONG,
  )
  assert.deepEqual(await listed(`state=active&destinationId=${wiring.destinationId}`), [])

  const opened = (): string[] =>
    pager.messages().flatMap(({ event, properties }) => {
      const { state, subject } = properties as { state: string; subject: { id: string } }
      return state === 'open' && subject.id === wiring.destinationId ? [String(event)] : []
    })
  assert.deepEqual(opened(), ['Deliveries Failed', 'Destination Failing'], 'each alert is sent once')
  const alert = pager.messages().find(({ event }) => event === 'Destination Failing')
  assert.ok(alert)
  assert.match((alert['properties'] as { message: string }).message, /Last error: The receiver answered 422 Unprocessable Entity\.$/)
})
