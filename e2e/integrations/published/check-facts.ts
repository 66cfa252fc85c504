// Creates a destination for each published fact as a user does, sends the event, and compares the requests that arrive with the published ones.
// All destinations share one service. Requests do not say which destination made them, so facts that concern the same server are checked one
// after the other, in rounds.

import assert from 'node:assert/strict'
import { type CatalogIntegration, readIntegration } from '@switchyard/integrations/catalog'
import type { Answer } from '../../system/receiver.ts'
import { startService } from '../../system/service.ts'
import { eventually } from '../../system/signals.ts'
import { type Delivery, type Reachable, wire } from '../../system/wiring.ts'
import { STARVED } from '../compare-requests.ts'
import { fillInForm } from '../form/fill-in-form.ts'
import { type GatewayRequest, startGateway } from '../gateway/recording-gateway.ts'
import { actionsOf } from '../seen/seen-actions.ts'
import { EVENT_TIME, type PublishedFact } from './facts/published-fact.ts'
import { requestDifferences } from './request-differences.ts'

export interface CheckedFact {
  fact: PublishedFact
  /** The actions that ran. */
  actions: readonly string[]
  /** Empty if the service does what is published. */
  differences: readonly string[]
}

interface Sent {
  delivery: Delivery
  actions: readonly string[]
}

/** How often a fact is checked again if a host got too little CPU time. */
const MOST_REPEATS = 4

export async function checkFacts(facts: readonly PublishedFact[]): Promise<CheckedFact[]> {
  await using gateway = await startGateway()
  await using service = await startService({ env: gateway.env })
  const checked = new Map<PublishedFact, CheckedFact>()
  for (const round of inRounds(facts)) {
    let left: readonly PublishedFact[] = round
    for (let repeats = 0; left.length > 0 && repeats <= MOST_REPEATS; repeats++) {
      const first = gateway.arrivals.length
      gateway.answer = (request) => answerOf(left, request)
      const sent = await Promise.allSettled(left.map((fact) => send(service, fact)))
      const arrived = gateway.requests().slice(first)
      for (const [at, fact] of left.entries()) checked.set(fact, compared(fact, sent[at] as PromiseSettledResult<Sent>, arrived))
      const strangers = arrived.filter(({ host }) => !left.some((fact) => hostsOf(fact).has(host)))
      assert.deepEqual(
        strangers.map(({ method, host, path }) => `${method} ${host}${path}`),
        [],
        'requests to servers that no fact mentions',
      )
      left = left.filter((_, at) => isStarved(sent[at] as PromiseSettledResult<Sent>))
    }
  }
  return facts.map((fact) => checked.get(fact) as CheckedFact)
}

/** Two facts of one round never concern the same server. */
function inRounds(facts: readonly PublishedFact[]): PublishedFact[][] {
  const rounds: { hosts: Set<string>; facts: PublishedFact[] }[] = []
  for (const fact of facts) {
    const hosts = hostsOf(fact)
    let round = rounds.find((each) => ![...hosts].some((host) => each.hosts.has(host)))
    if (round === undefined) rounds.push((round = { hosts: new Set(), facts: [] }))
    for (const host of hosts) round.hosts.add(host)
    round.facts.push(fact)
  }
  return rounds.map((round) => round.facts)
}

function hostsOf({ requests }: PublishedFact): ReadonlySet<string> {
  return new Set(requests.map(({ request }) => new URL(request.slice(request.indexOf(' ') + 1)).host))
}

function answerOf(facts: readonly PublishedFact[], { method, host, path }: GatewayRequest): Answer | undefined {
  const { answers = {} } = facts.find((fact) => hostsOf(fact).has(host)) ?? {}
  const answer = answers[`${method} https://${host}${path.replace(/\?.*/, '')}`]
  if (answer === undefined) return undefined
  return { status: answer.status ?? 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(answer.body ?? {}) }
}

async function send(service: Reachable, fact: PublishedFact): Promise<Sent> {
  const integration = (await readIntegration(fact.integration)) as CatalogIntegration
  const wiring = await wire(service, fillInForm(integration, fact))
  await wiring.send([{ timestamp: EVENT_TIME, ...fact.event }])
  // By the destination: several facts may use the same messageId.
  const { data } = await eventually(
    () => service.api<{ data: Delivery[] }>(`/deliveries?destinationId=${wiring.destinationId}`),
    ({ data: [first] }) => first !== undefined && (first.state !== 'pending' || first.attemptCount > 0),
  )
  const delivery = await service.api<Delivery>(`/deliveries/${data[0]?.id}`)
  return { delivery, actions: await actionsOf(service, wiring.destinationId, delivery.attempts) }
}

function compared(fact: PublishedFact, sent: PromiseSettledResult<Sent>, arrived: readonly GatewayRequest[]): CheckedFact {
  if (sent.status === 'rejected') return { fact, actions: [], differences: [String(sent.reason)] }
  const { delivery, actions } = sent.value
  const hosts = hostsOf(fact)
  const own = arrived.filter(({ host }) => hosts.has(host))
  const outcome = delivery.state === 'delivered' ? [] : [`${delivery.state} (${delivery.reason}: ${delivery.attempts.at(-1)?.error})`]
  return { fact, actions, differences: [...outcome, ...requestDifferences(fact.requests, own)] }
}

function isStarved(sent: PromiseSettledResult<Sent>): boolean {
  return sent.status === 'fulfilled' && sent.value.delivery.attempts.some(({ reason }) => STARVED.has(reason ?? ''))
}
