// Incidents, as documents: at most one open incident for each rule and subject. It stays under the key of its rule and subject until all alerts
// about it were sent, and then moves to the past. A problem that has begun, but has not lasted long enough, is kept under a key of its own, which
// nodes of earlier versions do not read, so that they send no alert about it; if it ends, it is forgotten. All changes are made under the lock of the documents, so several nodes agree on each of them.

import { createHash } from 'node:crypto'
import type { JsonObject } from '@switchyard/protocol'
import type { Severity } from '../api/alert-rule-ids.ts'
import { isUsualSentence, REASONS } from '../api/attempt-reasons.ts'
import { newId } from '../model/new-id.ts'
import { type Actor, type DocumentStore, InvalidCursor, type Page, type PageRequest } from '../store/store.ts'
import type { Details, Subject } from './rules/rule.ts'

export interface Incident {
  id: string
  rule: string
  subject: Subject
  /** `starting`: the problem has begun, but has not lasted long enough for an alert. */
  state: 'starting' | 'open' | 'closed'
  /** When the problem began. */
  sinceMs: number
  openedAtMs: number
  closedAtMs: number | null
  details: Details
  /** What people read: when it was opened, and when it was closed. */
  message: string
  /** The message when it was opened. Missing in incidents of earlier versions, as the next four fields are. */
  openedMessage?: string
  severity?: Severity
  /** When the message and the details were last up to date. */
  observedAtMs?: number
  /** The number that the rule follows over time, oldest first. */
  readings?: readonly (readonly [atMs: number, value: number])[]
  acknowledged?: Acknowledgement | null
  closedMessage: string | null
  /** The page of the dashboard that shows the cause, as a path. */
  link: string
  /** When the messages about it were sent; null if they were not. */
  openingToldAtMs: number | null
  closingToldAtMs: number | null
}

/** Somebody said that they take care of it. */
export interface Acknowledgement {
  atMs: number
  by: Actor
  /** The person, as they called themselves. */
  name: string
  note: string | null
}

export type NewIncident = Omit<Incident, 'id' | 'closedAtMs' | 'closedMessage' | 'openingToldAtMs' | 'closingToldAtMs'>

/** What an evaluation of the rules saw. `value`: the number that the rule follows; null if it follows none. */
export interface Observation extends Pick<Incident, 'details' | 'message'> {
  incident: Incident
  severity: Severity
  observedAtMs: number
  value: number | null
}

const KIND = 'incident'
const CURRENT = 'current/'
const STARTING = 'starting/'
const PAST = 'past/'
/** More current incidents than this are not looked at. */
const MAX_CURRENT = 5_000
const PAGE = 500
const SMALL_PAGE = 20
const MAX_READINGS = 60
const KEPT_MS = 90 * 86_400_000
const [, LOAD_FAILED] = REASONS.warehouse_failed
/** Finds the error of an engine in the messages of the rule `warehouse_tables`. */
const ENGINE_ERROR = /( cannot be loaded \([^)]*\): )([\s\S]*?)( The other tables are loaded, )/

export class Incidents {
  readonly #documents: DocumentStore

  constructor(documents: DocumentStore) {
    this.#documents = documents
  }

  /** The incidents that are open, or about which an alert still has to be sent; by key. */
  async current(): Promise<Map<string, Incident>> {
    const found = new Map<string, Incident>()
    for (let after: { key: string; atMs: number } | undefined; found.size < MAX_CURRENT; ) {
      const page = await this.#documents.list(KIND, { prefixes: [CURRENT, STARTING], order: 'key', after, limit: PAGE })
      // All that are open come before those that are starting.
      for (const { doc } of page) {
        const incident = incidentOf(doc)
        const key = keyOf(incident.rule, incident.subject)
        if (!found.has(key)) found.set(key, incident)
      }
      if (page.length < PAGE) break
      after = page.at(-1)
    }
    return found
  }

  /** Opens an incident, unless one about the same is current. */
  async open(incident: NewIncident): Promise<void> {
    const [key, startingKey] = keysOf(incident)
    const opened: Incident = {
      id: newId('inc'),
      ...incident,
      closedAtMs: null,
      closedMessage: null,
      openingToldAtMs: null,
      closingToldAtMs: null,
    }
    await this.#documents.update(KIND, [key, startingKey], (stored) => {
      const isKnown = stored.has(key) || stored.has(startingKey)
      return new Map(isKnown ? [] : [[opened.state === 'starting' ? startingKey : key, documentOf(opened)]])
    })
  }

  /** Opens an incident that was starting. */
  async confirm({ id, rule, subject }: Incident, change: Pick<Incident, 'openedAtMs' | 'message' | 'details'>): Promise<void> {
    const [key, startingKey] = keysOf({ rule, subject })
    await this.#documents.update(KIND, [key, startingKey], (stored) => {
      const now = storedIncident(stored, startingKey)
      if (now?.id !== id) return new Map()
      if (stored.has(key)) return new Map([[startingKey, null]])
      const opened = documentOf({ ...now, ...change, openedMessage: change.message, state: 'open' })
      return new Map([[startingKey, null] as const, [key, opened] as const])
    })
  }

  /** Forgets an incident that was starting. */
  async forget({ id, rule, subject }: Incident): Promise<void> {
    const [, startingKey] = keysOf({ rule, subject })
    await this.#documents.update(KIND, [startingKey], (stored) => {
      const now = storedIncident(stored, startingKey)
      return new Map(now?.id === id ? [[startingKey, null]] : [])
    })
  }

  /** Brings incidents up to date that are still current. */
  async observe(observations: readonly Observation[]): Promise<void> {
    for (let at = 0; at < observations.length; at += PAGE) {
      const some = new Map(observations.slice(at, at + PAGE).map((each) => [storedKeyOf(each.incident), each]))
      await this.#documents.update(KIND, [...some.keys()], (stored) => {
        const changed = new Map<string, ReturnType<typeof documentOf>>()
        for (const [key, { incident, value, ...change }] of some) {
          const now = storedIncident(stored, key)
          if (now?.id !== incident.id || now.state !== incident.state) continue
          const readings = value === null ? (now.readings ?? []) : withReading(now.readings ?? [], change.observedAtMs, value)
          changed.set(key, documentOf({ ...now, ...change, readings }))
        }
        return changed
      })
    }
  }

  /** Acknowledges a current incident, or takes that back. Returns it as it is then, and undefined if it is over or does not exist. */
  async acknowledge(id: string, acknowledged: Acknowledgement | null): Promise<{ before: Incident; after: Incident } | undefined> {
    for (;;) {
      const found = [...(await this.current()).values()].find((incident) => incident.id === id && incident.state !== 'closed')
      if (found === undefined) return undefined
      const key = storedKeyOf(found)
      let result: { before: Incident; after: Incident } | undefined
      await this.#documents.update(KIND, [key], (stored) => {
        const before = storedIncident(stored, key)
        if (before?.id !== id || before.state !== found.state) return new Map()
        const after = { ...before, acknowledged }
        result = { before, after }
        return new Map([[key, documentOf(after)]])
      })
      // If it changed its state in between, it is looked for again.
      if (result !== undefined) return result
    }
  }

  /** Changes a current incident, unless it was changed meanwhile to another state than the one given. Once it is over, it moves to the past. */
  async #change({ id, rule, subject, state }: Incident, change: Partial<Incident>, isOver: boolean): Promise<void> {
    const key = keyOf(rule, subject)
    await this.#documents.update(KIND, [key], (stored) => {
      const now = storedIncident(stored, key)
      if (now?.id !== id || now.state !== state) return new Map()
      const changed = documentOf({ ...now, ...change })
      return isOver ? new Map([[key, null] as const, [PAST + id, changed] as const]) : new Map([[key, changed]])
    })
  }

  close(incident: Incident, closedMessage: string, closedAtMs: number): Promise<void> {
    return this.#change(incident, { state: 'closed', closedAtMs, closedMessage }, false)
  }

  openingTold(incident: Incident, atMs: number): Promise<void> {
    return this.#change(incident, { openingToldAtMs: atMs }, false)
  }

  /** `toldAtMs` is null if no alert was sent about the closing, because none was sent about the opening. */
  end(incident: Incident, toldAtMs: number | null): Promise<void> {
    return this.#change(incident, { closingToldAtMs: toldAtMs }, true)
  }

  /** An incident may move from the current ones to the past between the two reads, but never back. So the current ones are read first. */
  async one(id: string): Promise<Incident | undefined> {
    for (const incident of (await this.current()).values()) if (incident.id === id) return incident
    const past = /^[\w-]{1,100}$/.test(id) ? await this.#documents.get(KIND, PAST + id) : undefined
    return past === undefined ? undefined : incidentOf(past.doc)
  }

  /** Incidents of the past, the last to be closed first. */
  async past(isWanted: (incident: Incident) => boolean, { limit, cursor }: PageRequest): Promise<Page<Incident>> {
    const [, atMs, at] = /^(\d{1,15}) (past\/[\w-]{1,100})$/.exec(cursor ?? '') ?? []
    if (cursor !== null && at === undefined) throw new InvalidCursor()
    let after = atMs === undefined || at === undefined ? undefined : { atMs: Number(atMs), key: at }
    const data: Incident[] = []
    for (;;) {
      const page = await this.#documents.list(KIND, { prefix: PAST, order: 'newest', after, limit: PAGE })
      for (const { key, atMs, doc } of page) {
        const incident = incidentOf(doc)
        if (!isWanted(incident)) continue
        if (data.length === limit) return { data, next: after === undefined ? null : `${after.atMs} ${after.key}` }
        data.push(incident)
        after = { key, atMs }
      }
      if (page.length < PAGE) return { data, next: null }
      after = page.at(-1)
    }
  }

  /** All incidents that were closed at this time or later. */
  async closedSince(sinceMs: number): Promise<Incident[]> {
    // Closed incidents stay among the current ones until all alerts about them have been sent.
    const found = [...(await this.current()).values()].filter(({ closedAtMs }) => closedAtMs !== null && closedAtMs >= sinceMs)
    for (let after: { key: string; atMs: number } | undefined; ; ) {
      const page = await this.#documents.list(KIND, { prefix: PAST, order: 'newest', after, limit: SMALL_PAGE })
      const recent = page.filter(({ atMs }) => atMs >= sinceMs)
      found.push(...recent.map(({ doc }) => incidentOf(doc)))
      if (recent.length < SMALL_PAGE) return found
      after = page.at(-1)
    }
  }

  async dropOld(nowMs: number): Promise<void> {
    await this.#documents.drop(KIND, { prefix: PAST, beforeMs: nowMs - KEPT_MS })
  }
}

/** The name of a node is not made of characters that a key may have. */
export function keyOf(rule: string, { id }: Pick<Subject, 'id'>): string {
  const encoded = /^[\w.:-]{1,100}$/.test(id) ? id : createHash('sha256').update(id).digest('base64url')
  return `${CURRENT}${rule}/${encoded}`
}

/** Where it is stored: once it is open, and while it is starting. */
function keysOf({ rule, subject }: Pick<Incident, 'rule' | 'subject'>): [open: string, starting: string] {
  const key = keyOf(rule, subject)
  return [key, STARTING + key.slice(CURRENT.length)]
}

function storedKeyOf(incident: Incident): string {
  return keysOf(incident)[incident.state === 'starting' ? 1 : 0]
}

/** Once there are too many, every other one is dropped, so they always cover the whole time, in equal steps. */
function withReading(readings: NonNullable<Incident['readings']>, atMs: number, value: number): NonNullable<Incident['readings']> {
  const [last] = readings.slice(-1)
  const [first] = readings
  const stepMs = first === undefined || last === undefined ? 0 : (last[0] - first[0]) / Math.max(1, readings.length - 1)
  // The newest one is replaced until a whole step has passed.
  const kept =
    last !== undefined && readings.length > 2 && atMs - (readings.at(-2)?.[0] ?? 0) < stepMs * 1.5 ? readings.slice(0, -1) : readings
  const all = [...kept, [atMs, value] as const]
  return all.length <= MAX_READINGS ? all : all.filter((_, at) => at % 2 === 0 || at === all.length - 1)
}

/** Without a cause that may quote a message, which an earlier version has stored. */
function incidentOf(doc: JsonObject): Incident {
  const incident = doc as unknown as Incident
  if (incident.rule === 'warehouse_tables') return withoutEngineError(incident)
  const { cause, ...details } = incident.details
  return typeof cause === 'string' && !isUsualSentence(cause) ? { ...incident, details } : incident
}

/** Removes the error of an engine, which earlier versions stored if a table could not be loaded. */
function withoutEngineError(incident: Incident): Incident {
  const { details, message, openedMessage } = incident
  const { problem } = details
  const isQuoting = details['kind'] === 'failing' && typeof problem === 'string' && !isUsualSentence(problem)
  return {
    ...incident,
    message: withoutQuote(message),
    ...(openedMessage === undefined ? {} : { openedMessage: withoutQuote(openedMessage) }),
    ...(isQuoting ? { details: { ...details, problem: LOAD_FAILED } } : {}),
  }
}

function withoutQuote(text: string): string {
  return text.replace(ENGINE_ERROR, (_, before: string, said: string, after: string) => {
    return `${before}${isUsualSentence(said) ? said : LOAD_FAILED}${after}`
  })
}

function storedIncident(stored: ReadonlyMap<string, { doc: JsonObject }>, key: string): Incident | undefined {
  const found = stored.get(key)
  return found === undefined ? undefined : incidentOf(found.doc)
}

function documentOf(incident: Incident): { atMs: number; doc: JsonObject } {
  return { atMs: incident.closedAtMs ?? incident.openedAtMs, doc: { ...incident } }
}
