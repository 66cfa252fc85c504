// Incidents, as documents: at most one open incident for each rule and subject. It stays under the key of its rule and subject until all alerts
// about it were sent, and then moves to the past. All changes are made under the lock of the documents, so several nodes agree on each of them.

import { createHash } from 'node:crypto'
import type { JsonObject } from '@switchyard/protocol'
import { newId } from '../model/new-id.ts'
import { type DocumentStore, InvalidCursor, type Page, type PageRequest } from '../store/store.ts'
import type { Details, Subject } from './rules/rule.ts'

export interface Incident {
  id: string
  rule: string
  subject: Subject
  state: 'open' | 'closed'
  /** When the problem began. */
  sinceMs: number
  openedAtMs: number
  closedAtMs: number | null
  details: Details
  /** What people read: when it was opened, and when it was closed. */
  message: string
  closedMessage: string | null
  /** The page of the dashboard that shows the cause, as a path. */
  link: string
  /** When the messages about it were sent; null if they were not. */
  openingToldAtMs: number | null
  closingToldAtMs: number | null
}

export type NewIncident = Omit<Incident, 'id' | 'state' | 'closedAtMs' | 'closedMessage' | 'openingToldAtMs' | 'closingToldAtMs'>

const KIND = 'incident'
const CURRENT = 'current/'
const PAST = 'past/'
/** More current incidents than this are not looked at. */
const MAX_CURRENT = 5_000
const PAGE = 500
const KEPT_MS = 90 * 86_400_000

export class Incidents {
  readonly #documents: DocumentStore

  constructor(documents: DocumentStore) {
    this.#documents = documents
  }

  /** The incidents that are open, or about which an alert still has to be sent; by key. */
  async current(): Promise<Map<string, Incident>> {
    const found = new Map<string, Incident>()
    for (let after: { key: string; atMs: number } | undefined; found.size < MAX_CURRENT; ) {
      const page = await this.#documents.list(KIND, { prefix: CURRENT, order: 'key', after, limit: PAGE })
      for (const { key, doc } of page) found.set(key, doc as unknown as Incident)
      if (page.length < PAGE) break
      after = page.at(-1)
    }
    return found
  }

  /** Opens an incident, unless one about the same is current. */
  async open(incident: NewIncident): Promise<void> {
    const key = keyOf(incident.rule, incident.subject)
    const opened: Incident = {
      id: newId('inc'),
      ...incident,
      state: 'open',
      closedAtMs: null,
      closedMessage: null,
      openingToldAtMs: null,
      closingToldAtMs: null,
    }
    await this.#documents.update(KIND, [key], (stored) => new Map(stored.has(key) ? [] : [[key, documentOf(opened)]]))
  }

  /** Changes a current incident, unless it was changed meanwhile to another state than the one given. Once it is over, it moves to the past. */
  async #change({ id, rule, subject, state }: Incident, change: Partial<Incident>, isOver: boolean): Promise<void> {
    const key = keyOf(rule, subject)
    await this.#documents.update(KIND, [key], (stored) => {
      const now = stored.get(key)?.doc as unknown as Incident | undefined
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

  async one(id: string): Promise<Incident | undefined> {
    const past = /^[\w-]{1,100}$/.test(id) ? await this.#documents.get(KIND, PAST + id) : undefined
    if (past !== undefined) return past.doc as unknown as Incident
    for (const incident of (await this.current()).values()) if (incident.id === id) return incident
    return undefined
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
        const incident = doc as unknown as Incident
        if (!isWanted(incident)) continue
        if (data.length === limit) return { data, next: after === undefined ? null : `${after.atMs} ${after.key}` }
        data.push(incident)
        after = { key, atMs }
      }
      if (page.length < PAGE) return { data, next: null }
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

function documentOf(incident: Incident): { atMs: number; doc: JsonObject } {
  return { atMs: incident.closedAtMs ?? incident.openedAtMs, doc: { ...incident } }
}
