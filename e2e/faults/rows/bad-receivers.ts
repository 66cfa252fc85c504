// Receivers misbehave for a few seconds, each in its own way. One receiver stays healthy: its messages must not be delayed. The last answer
// of a receiver to a message decides how its delivery must end.

import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../../cluster/latency.ts'
import type { Answer, Behaviour } from '../../system/receiver.ts'
import { eventually } from '../../system/signals.ts'
import { BAD_ANSWERS_TO_INTEGRATIONS, type BadAnswer, badAnswers, LONG_RETRY_AFTER, REDIRECTED_PATH } from '../causes/bad-answers.ts'
import type { Fault, Injection } from '../rounds/fault.ts'
import { injected } from '../rounds/round.ts'
import { type FinalState, LETTERS, type PlannedDestination, type TalliedDestination, USUAL_DESTINATIONS } from '../system/destinations.ts'
import { numberOf } from '../system/numbered-message.ts'
import type { Random } from '../system/random.ts'
import type { System } from '../system/system.ts'

const HEALTHY = 'one by one'
const SHORT_WINDOW = 'short retry window'
/** The timeout of the integration. With the usual 30 s, each fault would take longer. */
const TIMEOUT_MS = 10_000
/** During faults, the delay at the healthy destination may be three times the delay between faults, and this much longer: the machine is loaded. */
const MOST_DELAYED_MS = 2_500
const FAULT_MS = [500, 3_000] as const

/** The receiver of the last one asks for endless pauses, so messages that were attempted expire at the end of the retry window. */
const DESTINATIONS: readonly PlannedDestination[] = [
  ...USUAL_DESTINATIONS,
  { name: SHORT_WINDOW, settings: { retryWindowMs: 30_000 }, expected: () => 'delivered' },
]

/** How the receivers of a system misbehave. */
interface Misbehaviour {
  receivers: BadReceiver[]
  /** For each message at the healthy receiver, during faults and between them: the time since the service received it. */
  delaysMs: number[]
  otherDelaysMs: number[]
  isOn: boolean
}

interface BadReceiver {
  destination: TalliedDestination
  kinds: readonly (readonly BadAnswer[])[]
  /** The next bad answer; undefined: the usual one. */
  next: () => BadAnswer | undefined
}

const systems = new WeakMap<System, Misbehaviour>()

const receivers: Injection = {
  key: 'receivers',
  title: 'Receivers misbehave',
  how: 'Most receivers misbehave at once, each in its own way, for 0.5 to 3 s: they refuse connections, go down and up again repeatedly, hang, respond very slowly, reset connections in the middle of a response, or respond with garbage, broken HTTP, gigabytes, redirects, unusual statuses, or an invalid or extremely long Retry-After.',
  note: 'One receiver stays healthy; the round fails if its messages arrive much later during faults than between them (p99). A message whose last response was a permanent error must be recorded as failed. If a 2xx response may have been lost, or came with broken data, another copy of the message does not count as arrived twice. The time to recover includes the pauses of circuit breakers.',
  stores: ['sqlite', 'postgres'],
  perRound: 12,
  repeatsInOrder: true,
  system: () => ({ destinations: DESTINATIONS }),
  async cause(system, random) {
    const misbehaviour = systems.get(system) ?? (await install(system, random))
    const chosen = misbehaviour.receivers.filter(() => random.chance(0.7))
    if (chosen.length === 0) chosen.push(random.pick(misbehaviour.receivers))
    const ms = random.int(...FAULT_MS)
    misbehaviour.isOn = true
    await Promise.all(chosen.map((receiving) => misbehave(receiving, ms, random)))
    misbehaviour.isOn = false
    // A new URL ends the pause for messages that were not attempted yet. The others wait for the end of their retry window.
    const paused = chosen.find(({ destination }) => destination.name === SHORT_WINDOW)?.destination
    if (paused !== undefined) {
      const url = await urlOf(system, paused)
      await system.api(`/destinations/${paused.id}`, { method: 'PATCH', body: { urls: [`${url.split('?')[0]}?${random.int(1, 1e9)}`] } })
    }
  },
  async check(system) {
    const { delaysMs = [], otherDelaysMs = [] } = systems.get(system) ?? {}
    const [during, otherwise] = [percentile(delaysMs, 0.99) || 0, percentile(otherDelaysMs, 0.99) || 0]
    return during <= MOST_DELAYED_MS + 3 * otherwise
      ? []
      : [`the p99 delay at the healthy destination was ${during} ms during faults, but ${otherwise} ms between them`]
  },
}

export const BAD_RECEIVERS: readonly Fault[] = [injected(receivers)]

/** Makes one receiver misbehave for this long. */
async function misbehave(receiving: BadReceiver, ms: number, random: Random): Promise<void> {
  const { destination, kinds } = receiving
  const untilMs = performance.now() + ms
  const way = destination.name === SHORT_WINDOW ? 1 : random.next()
  if (way < 0.1) {
    await destination.receiver.goAway()
    await sleep(ms)
    await comeBack(destination)
  } else if (way < 0.2) {
    while (performance.now() < untilMs) {
      await destination.receiver.goAway()
      await sleep(random.int(20, 300))
      await comeBack(destination)
      await sleep(random.int(20, 300))
    }
  } else {
    const kind = random.pick(kinds)
    const only = way < 0.5 ? random.pick(kind) : undefined
    receiving.next = () => only ?? (random.chance(0.2) ? undefined : random.pick(random.pick(kinds)))
    await sleep(ms)
    receiving.next = () => undefined
  }
}

/** Tries again, because a connection of another process may use the port for a moment. */
async function comeBack({ name, receiver }: TalliedDestination): Promise<void> {
  await eventually(
    () =>
      receiver.comeBack().then(
        () => true,
        () => false,
      ),
    (isBack) => isBack,
    { what: `the receiver of "${name}" listens again` },
  )
}

async function install(system: System, random: Random): Promise<Misbehaviour> {
  const { destinations, problems } = system
  const named = (name: string): TalliedDestination => destinations.find((one) => one.name === name) as TalliedDestination
  const misbehaviour: Misbehaviour = { receivers: [], delaysMs: [], otherDelaysMs: [], isOn: false }
  systems.set(system, misbehaviour)

  const healthy = named(HEALTHY)
  const usual = healthy.receiver.answer
  healthy.receiver.answer = (arrival) => {
    if (arrival.path === REDIRECTED_PATH) problems.push('a redirect was followed')
    const delaysMs = misbehaviour.isOn ? misbehaviour.delaysMs : misbehaviour.otherDelaysMs
    for (const { receivedAt } of arrival.messages) delaysMs.push(arrival.wallMs - Date.parse(receivedAt as string))
    return usual(arrival)
  }
  const elsewhere = await urlOf(system, healthy)
  for (const destination of destinations) {
    if (destination === healthy) continue
    const isWebhook = destination.name !== 'integration'
    if (!isWebhook) await system.api(`/destinations/${destination.id}`, { method: 'PATCH', body: { timeoutMs: TIMEOUT_MS } })
    misbehaviour.receivers.push(receiving(destination, isWebhook ? badAnswers(elsewhere) : BAD_ANSWERS_TO_INTEGRATIONS, random))
  }
  const [refusing, letters] = [named('refusing some'), named(LETTERS)]
  const ofLetter = letters.expected
  // Every delivery that failed has a dead letter.
  letters.expected = (nth) => (refusing.expected(nth) === 'failed' ? (ofLetter(nth) === 'failed' ? 'failed' : 'delivered') : undefined)
  return misbehaviour
}

async function urlOf(system: System, { id }: TalliedDestination): Promise<string> {
  const { urls } = await system.api<{ urls: [string] }>(`/destinations/${id}`)
  return urls[0]
}

/** From now on, the last answer to a message decides how its delivery must end. */
function receiving(destination: TalliedDestination, kinds: BadReceiver['kinds'], random: Random): BadReceiver {
  const { receiver, tally, sightings, idsOf, expected } = destination
  const one: BadReceiver = { destination, kinds, next: () => undefined }
  const last = new Map<number, FinalState>()
  const usual = receiver.answer
  const hasShortWindow = destination.name === SHORT_WINDOW
  if (hasShortWindow) one.kinds = [[{ ends: 'retried', answer: () => longPause(random) }]]
  const answerWith: Behaviour = (arrival) => {
    const ids = idsOf(arrival)
    let bad = one.next()
    const isSuccess = bad?.ends === 'delivered' || bad?.ends === 'either'
    // Refused in any case, by the receiver or by the integration.
    if (isSuccess && ids.some((id) => expected(numberOf(id)) === 'failed')) bad = undefined
    const answer = bad === undefined ? usual(arrival) : bad.answer(random)
    for (const id of ids) {
      if (bad?.ends === 'failed') last.set(numberOf(id), 'failed')
      else if (hasShortWindow && (bad !== undefined || (answer?.status ?? 200) !== 200)) last.set(numberOf(id), 'expired')
      else last.delete(numberOf(id))
      if (bad?.ends === 'either') tally.addUncertain(id)
    }
    if (bad !== undefined && bad.ends !== 'retried') sightings?.ended(ids, arrival.atMs)
    tally.notify()
    return answer
  }
  receiver.answer = answerWith
  destination.expected = (nth) => last.get(nth) ?? expected(nth)
  return one
}

function longPause(random: Random): Answer {
  return { status: random.pick([429, 503]), headers: { 'retry-after': random.pick(LONG_RETRY_AFTER) } }
}
