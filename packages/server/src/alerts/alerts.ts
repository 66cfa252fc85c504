// The alerts stage: notices what is wrong with sources, destinations and nodes, records it as incidents, and sends alerts: messages of the source
// `system`, which are routed and delivered like all others. Every node has a timer, and one node at a time evaluates the rules. Incidents are
// opened under a lock, and alerts are sent from what is stored, so each alert is sent once, and a node that dies in between loses nothing.

import { randomUUID } from 'node:crypto'
import type { RuleId } from '../api/alert-rule-ids.ts'
import type { AcceptedEvent } from '../ingest/events.ts'
import { type AcceptBatch, type Actor, type Page, type PageRequest, type Store, StoreUnavailable } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import { incidentMessage, type MessageContext, testMessage } from './alert-message.ts'
import { AlertSettings, isMuted, type Mute, settingsFor } from './alert-settings.ts'
import { type Acknowledgement, type Incident, Incidents, keyOf, type Observation } from './incidents.ts'
import { type ObservationParts, Observations, type Observed } from './observations.ts'
import type { Rule, RuleVerdict } from './rules/rule.ts'
import { RULES } from './rules/rules.ts'

export interface AlertParts extends Pick<ObservationParts, 'failureOf' | 'holdOf' | 'violations' | 'storePath' | 'quarantineDays'> {
  store: Store
  clock: Pick<Clock, 'wallMs' | 'scheduleMs'>
  route: MessageContext['route']
  /** The address of the dashboard, without a slash at the end. */
  baseUrl: () => string
  version: string
  onAccepted?: ((event: AcceptedEvent) => void) | undefined
  /** Writes counts that are still in memory to the store. */
  flushStats?: (() => Promise<void>) | undefined
  onError?: ((error: unknown) => void) | undefined
}

const EVALUATE_EVERY_MS = 15_000
/** A longer time between two evaluations means that the machine was suspended, or that its clock was set. */
const LONGEST_GAP_MS = 2 * 60_000
const DROP_EVERY_MS = 3_600_000
const OPEN_CURSOR = /^open (\d{1,9})$/

export class Alerts {
  readonly settings: AlertSettings
  readonly #parts: AlertParts
  readonly #incidents: Incidents
  readonly #observations: Observations
  #timer: NodeJS.Timeout | undefined
  #working: Promise<void> = Promise.resolve()
  #droppedAtMs = 0
  #evaluatedAtMs: number
  #stopping = false

  constructor(parts: AlertParts) {
    const { store, clock } = parts
    this.#parts = parts
    this.#evaluatedAtMs = clock.wallMs()
    this.settings = new AlertSettings(store.documents)
    this.#incidents = new Incidents(store.documents)
    const closedSince = (sinceMs: number): Promise<Incident[]> => this.#incidents.closedSince(sinceMs)
    this.#observations = new Observations({ ...parts, closedSince, startedAtMs: clock.wallMs() })
  }

  start(): void {
    this.#timer = setInterval(() => void this.evaluate(), EVALUATE_EVERY_MS).unref()
  }

  /** Evaluates the rules and sends the alerts that were not sent yet, if this is the node that does so. Called by the timer, or by a test. */
  evaluate(): Promise<void> {
    this.#working = this.#working
      .then(() => this.#evaluate())
      .catch((error: unknown) => {
        this.#observations.interrupted(this.#parts.clock.wallMs())
        // The store reports by itself that it is unavailable.
        if (!(error instanceof StoreUnavailable)) this.#parts.onError?.(error)
      })
    return this.#working
  }

  /** Ends an evaluation in progress after its current query. What it has not done is done by the next one, here or on another node. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#stopping = true
    // Without it, the other nodes would open an incident about this node after a minute. It does not wait for an evaluation, which may take long.
    const left = this.#observations.leave(this.#parts.clock.wallMs()).catch(() => {})
    await Promise.all([left, this.#working])
  }

  async #evaluate(): Promise<void> {
    const { store, clock, flushStats } = this.#parts
    const nowMs = clock.wallMs()
    const gapMs = nowMs - this.#evaluatedAtMs
    this.#evaluatedAtMs = nowMs
    if (gapMs < 0 || gapMs > LONGEST_GAP_MS) this.#observations.interrupted(nowMs)
    this.#observations.seeNodes(nowMs)
    // Two nodes that both think they are the first only do the same work twice.
    if (store.nodes !== undefined && store.nodes.rank !== 0) return
    await flushStats?.()
    const choices = await this.settings.choices()
    const current = await this.#incidents.current()
    for (const { subject, sinceMs, details } of current.values()) {
      // This node may not have seen a node that another one missed.
      if (subject.kind === 'node')
        this.#observations.rememberNode(subject.name, { seenAtMs: sinceMs, nodes: Number(details['nodesBefore']) })
    }
    if (this.#stopping) return
    const observed = await this.#observations.read(nowMs)
    const judged = new Set<string>()
    const seen: Observation[] = []
    /** What begins in this evaluation: rules that cover others come before them. */
    const begun = new Set<string>()
    for (const { subject, about } of observed) {
      if (this.#stopping) return
      for (const rule of RULES as readonly Rule<unknown>[]) {
        if (rule.subject !== subject.kind) continue
        const { enabled, values } = settingsFor(choices, rule, subject.id)
        if (!enabled) continue
        const key = keyOf(rule.id, subject)
        judged.add(key)
        const verdict = rule.judge(about, values)
        const coveredBy = rule.unless.find((other) => {
          const more = keyOf(other, subject)
          return begun.has(more) || (current.has(more) && current.get(more)?.state !== 'closed')
        })
        const judgedBy = coveredBy === undefined ? verdict : ({ ...verdict, verdict: 'close', isStarting: false, coveredBy } as const)
        if (judgedBy.verdict === 'open' || judgedBy.isStarting === true) begun.add(key)
        const observation = await this.#follow(rule, { subject, about }, judgedBy, current.get(key), nowMs)
        if (observation !== null) seen.push(observation)
      }
    }
    await this.#incidents.observe(seen)
    // The subject was deleted, or the rule was turned off.
    for (const [key, incident] of current) {
      if (judged.has(key)) continue
      if (incident.state === 'starting') await this.#incidents.forget(incident)
      if (incident.state === 'open') {
        const message = `${incident.subject.name} is no longer monitored: it was deleted or disabled, or the rule was turned off.`
        await this.#incidents.close(incident, message, nowMs)
      }
    }
    await this.#tell()
    if (nowMs - this.#droppedAtMs < DROP_EVERY_MS) return
    this.#droppedAtMs = nowMs
    await this.#incidents.dropOld(nowMs)
  }

  async #follow(
    rule: Rule<unknown>,
    { subject }: Observed,
    judged: RuleVerdict & { coveredBy?: RuleId },
    incident: Incident | undefined,
    nowMs: number,
  ): Promise<Observation | null> {
    const { verdict, isStarting = false } = judged
    const state = verdict === 'open' ? 'open' : 'starting'
    const sinceMs = incident?.sinceMs ?? this.#beginning(subject, judged.sinceMs, nowMs)
    const details = { ...incident?.details, ...judged.details }
    const messageOf = (): string => rule.opened(subject.name, { ...details, forMs: nowMs - sinceMs })
    if (incident === undefined) {
      if (verdict !== 'open' && !isStarting) return null
      const message = messageOf()
      const severity = rule.severity(details)
      const value = valueOf(rule, details)
      const seen = { severity, observedAtMs: nowMs, readings: value === null ? [] : [[nowMs, value] as const], acknowledged: null }
      const link = rule.link(subject.id, details)
      const about = { rule: rule.id, subject, state, sinceMs, openedAtMs: nowMs, details, message, openedMessage: message, link } as const
      await this.#incidents.open({ ...about, ...seen })
    } else if (verdict === 'close') {
      if (incident.state === 'starting') await this.#incidents.forget(incident)
      if (incident.state === 'open') {
        const message =
          judged.coveredBy === undefined
            ? rule.closed(subject.name, { ...details, forMs: nowMs - incident.sinceMs })
            : `This is now part of the incident "${eventOf(judged.coveredBy)}" about "${subject.name}".`
        await this.#incidents.close(incident, message, nowMs)
      }
    } else if (verdict === 'open' && incident.state === 'starting') {
      await this.#incidents.confirm(incident, { openedAtMs: nowMs, message: messageOf(), details })
    } else if (incident.state !== 'closed') {
      return {
        incident,
        details,
        message: messageOf(),
        severity: rule.severity(details),
        observedAtMs: nowMs,
        value: valueOf(rule, details),
      }
    }
    return null
  }

  /** A problem cannot have begun before the source or destination existed: counts per minute and per hour begin earlier. */
  #beginning({ kind, id }: Observed['subject'], sinceMs: number, nowMs: number): number {
    const { sources, destinations } = this.#parts.store.configuration()
    const createdAtMs = (kind === 'source' ? sources.get(id) : kind === 'destination' ? destinations.get(id) : undefined)?.createdAtMs ?? 0
    return createdAtMs > nowMs ? sinceMs : Math.max(sinceMs, createdAtMs)
  }

  /** Sends the alerts about stored incidents that were not sent yet, whichever node opened the incident. */
  async #tell(): Promise<void> {
    const { clock } = this.#parts
    const current = await this.#incidents.current()
    const due = [...current.values()].filter(
      ({ state, openingToldAtMs }) => state === 'closed' || (state === 'open' && openingToldAtMs === null),
    )
    if (due.length === 0) return
    const choices = await this.settings.choices()
    const mutes = await this.settings.mutes(clock.wallMs())
    for (const incident of due) {
      if (this.#stopping) return
      const nowMs = clock.wallMs()
      const rule = RULES.find(({ id }) => id === incident.rule)
      const isQuiet =
        rule === undefined ||
        !settingsFor(choices, rule, incident.subject.id).notifies ||
        isMuted(mutes, incident.rule, incident.subject, nowMs)
      let { openingToldAtMs } = incident
      if (openingToldAtMs === null && !isQuiet) {
        await this.#send(incidentMessage(incident, rule, 'open', this.#context(nowMs)))
        openingToldAtMs = nowMs
        await this.#incidents.openingTold(incident, nowMs)
      }
      if (incident.state !== 'closed') continue
      // An incident whose opening was announced is also announced as closed, unless it was muted in the meantime.
      const isTold = openingToldAtMs !== null && !isQuiet
      if (isTold) await this.#send(incidentMessage(incident, rule, 'closed', this.#context(nowMs)))
      await this.#incidents.end(incident, isTold ? nowMs : null)
    }
  }

  async #send(batch: AcceptBatch): Promise<void> {
    const { store, onAccepted } = this.#parts
    const { segment, duplicates } = await store.ingest.accept(batch)
    if (segment === null) return
    const { content, body, routing, quarantined } = batch
    onAccepted?.({
      sourceId: content.sourceId,
      messages: 1,
      duplicates: duplicates.length,
      bytes: body.length,
      content,
      repeated: duplicates,
      routing,
      quarantined,
    })
  }

  #context(nowMs: number): MessageContext {
    const { store, route, baseUrl, version } = this.#parts
    return { configuration: store.configuration(), route, baseUrl: baseUrl(), version, nowMs }
  }

  /** Sends a test message to all destinations of the source `system`. */
  async test(actor: Actor): Promise<{ messageId: string; destinationIds: string[] }> {
    const messageId = `alert-test-${randomUUID()}`
    const batch = testMessage(messageId, actor.name, this.#context(this.#parts.clock.wallMs()))
    await this.#send(batch)
    return { messageId, destinationIds: batch.routing.shipments.map(({ destinationId }) => destinationId) }
  }

  /** Incidents, newest first: the open ones, and then the past ones. */
  async incidents(isWanted: (incident: Incident) => boolean, page: PageRequest): Promise<Page<Incident>> {
    const [, skipped = null] = OPEN_CURSOR.exec(page.cursor ?? 'open 0') ?? []
    if (skipped === null) return this.#incidents.past(isWanted, page)
    const from = Number(skipped)
    const current = [...(await this.#incidents.current()).values()].filter(isWanted)
    const open = current.sort((a, b) => b.openedAtMs - a.openedAtMs || (a.id < b.id ? -1 : 1)).slice(from)
    if (open.length > page.limit) return { data: open.slice(0, page.limit), next: `open ${from + page.limit}` }
    const room = page.limit - open.length
    // An incident may have moved to the past since the current ones were read.
    const listed = new Set(open.map(({ id }) => id))
    const rest = await this.#incidents.past((each) => !listed.has(each.id) && isWanted(each), { limit: Math.max(1, room), cursor: null })
    if (room === 0) return { data: open, next: rest.data.length === 0 ? null : `open ${from + open.length}` }
    return { data: [...open, ...rest.data], next: rest.next }
  }

  /** All mutes, for everybody: whether an incident is muted does not depend on who asks. */
  mutesInForce(nowMs: number): Promise<Mute[]> {
    return this.settings.mutes(nowMs)
  }

  incident(id: string): Promise<Incident | undefined> {
    return this.#incidents.one(id)
  }

  /** Undefined if it is over, or does not exist. */
  acknowledge(id: string, acknowledged: Acknowledgement | null): Promise<{ before: Incident; after: Incident } | undefined> {
    return this.#incidents.acknowledge(id, acknowledged)
  }

  async openCount(): Promise<number> {
    return [...(await this.#incidents.current()).values()].filter(({ state }) => state === 'open').length
  }
}

function eventOf(ruleId: RuleId): string {
  return RULES.find(({ id }) => id === ruleId)?.event ?? ruleId
}

function valueOf({ measure }: Rule<unknown>, details: Incident['details']): number | null {
  const value = measure === null ? null : details[measure.name]
  return typeof value === 'number' ? value : null
}
