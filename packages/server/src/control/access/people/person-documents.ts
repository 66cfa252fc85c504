// People and their sessions as documents of the store. Nothing of them is cached, so what one node ends is ended on all nodes with its next
// read. A person is an issuer and a subject, never an email. A session is found by the hash of its cookie, and has the grant with which the provider
// is asked again, encrypted.

import { createHash, randomBytes } from 'node:crypto'
import type { JsonObject } from '@switchyard/protocol'
import type { Claims } from '../../../api/settings/role-rules.ts'
import type { Role, SourceScope } from '../../../model/configuration.ts'
import type { SecretBox } from '../../../secrets/secret-box.ts'
import type { DocumentStore } from '../../../store/port/documents.ts'
import type { Grant } from './provider.ts'

const PERSON = 'person'
const SESSION = 'person-session'
/** States of logins and ids of logout tokens, until they would have expired. */
const USED = 'person-used'

export interface Person {
  id: string
  issuer: string
  subject: string
  email: string | null
  name: string | null
  role: Role
  sources: SourceScope
  /** False if the provider or the rules give the person nothing any more. */
  hasAccess: boolean
  /** The rules that the role and the sources are from, as a hash. */
  rules: string
  createdAtMs: number
  lastSeenAtMs: number
  checkedAtMs: number
  /** Since when the provider does not respond; null if it does. */
  awaySinceMs: number | null
}

export interface PersonSession {
  key: string
  personId: string
  startedAtMs: number
  expiresAtMs: number
  /** The cookie is worthless. The grant is kept, because tokens of the person depend on it. */
  isEnded: boolean
  rules: string
  checkedAtMs: number
  triedAtMs: number
  awaySinceMs: number | null
  /** While a node asks the provider, the others wait: most grants can be used only once. */
  leaseUntilMs: number
  sid: string | null
  /** Encrypted. */
  grant: string
  /** What the rules compare of the ID token of the login, for providers whose userinfo does not have it. */
  claims: Claims
}

const KEY_CHARS = 40
const PAGE = 500

export function personIdOf(issuer: string, subject: string): string {
  return `per_${createHash('sha256')
    .update(JSON.stringify([issuer, subject]))
    .digest('hex')
    .slice(0, 24)}`
}

/** The value of a session cookie. The id of the person in it only makes the sessions of a person easy to list. */
export function newSessionCookie(personId: string): string {
  return `p.${personId}.${randomBytes(32).toString('base64url')}`
}

/** The key of the session of a cookie; null if it is the cookie of no person. */
export function sessionKeyOf(cookie: string): string | null {
  const [, personId, secret] = /^p\.(per_[0-9a-f]{24})\.([\w-]{43})$/.exec(cookie) ?? []
  return personId === undefined || secret === undefined ? null : `${personId} ${hashOf(secret)}`
}

export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, KEY_CHARS)
}

export class PersonDocuments {
  readonly #documents: DocumentStore
  readonly #box: SecretBox

  constructor(documents: DocumentStore, box: SecretBox) {
    this.#documents = documents
    this.#box = box
  }

  async person(id: string): Promise<Person | undefined> {
    const found = await this.#documents.get(PERSON, id)
    return found && ({ ...found.doc, id } as unknown as Person)
  }

  async people(after: string | null, limit: number): Promise<Person[]> {
    const query = { order: 'key' as const, limit, after: after === null ? undefined : { key: after, atMs: 0 } }
    return (await this.#documents.list(PERSON, query)).map(({ key, doc }) => Object.assign(doc, { id: key }) as unknown as Person)
  }

  /** `change` gets the stored person. If it returns null, nothing is written. */
  async updatePerson(id: string, change: (before: Person | undefined) => Person | null): Promise<void> {
    await this.#documents.update(PERSON, [id], (stored) => {
      const before = stored.get(id)
      const after = change(before && ({ ...before.doc, id } as unknown as Person))
      return after === null ? new Map() : new Map([[id, { atMs: after.checkedAtMs, doc: after as unknown as JsonObject }]])
    })
  }

  async session(key: string): Promise<PersonSession | undefined> {
    const found = await this.#documents.get(SESSION, key)
    return found && sessionOf(found)
  }

  /** Of one person, or of everybody. */
  async sessions(personId: string | null): Promise<PersonSession[]> {
    const all: PersonSession[] = []
    for (let after: { key: string; atMs: number } | undefined; ; ) {
      const query = { order: 'key' as const, limit: PAGE, after, ...(personId !== null && { prefix: `${personId} ` }) }
      const page = await this.#documents.list(SESSION, query)
      all.push(...page.map(sessionOf))
      if (page.length < PAGE) return all
      after = page.at(-1)
    }
  }

  /** `change` gets the stored session. If it returns null, the session is deleted; if undefined, nothing is written. */
  async updateSession(key: string, change: (before: PersonSession | undefined) => PersonSession | null | undefined): Promise<void> {
    await this.#documents.update(SESSION, [key], (stored) => {
      const before = stored.get(key)
      const after = change(before && sessionOf(before))
      if (after === undefined) return new Map()
      return new Map([[key, after === null ? null : { atMs: after.expiresAtMs, doc: after as unknown as JsonObject }]])
    })
  }

  /** Returns true for the first use, also of concurrent ones on several nodes. */
  async use(what: string, keepUntilMs: number, nowMs: number): Promise<boolean> {
    const key = hashOf(what)
    let isFirst = false
    await this.#documents.update(USED, [key], (stored) => {
      isFirst = !stored.has(key)
      return isFirst ? new Map([[key, { atMs: keepUntilMs, doc: {} }]]) : new Map()
    })
    await this.#documents.drop(USED, { beforeMs: nowMs })
    return isFirst
  }

  dropPeople(beforeMs: number): Promise<number> {
    return this.#documents.drop(PERSON, { beforeMs })
  }

  seal(key: string, grant: Grant): string {
    return this.#box.seal(JSON.stringify(grant), key)
  }

  /** Throws SecretBoxError, if the key was replaced since. */
  open({ key, grant }: PersonSession): Grant {
    return JSON.parse(this.#box.open(grant, key)) as Grant
  }
}

function sessionOf({ key, atMs, doc }: { key: string; atMs: number; doc: JsonObject }): PersonSession {
  return { ...doc, key, expiresAtMs: atMs } as unknown as PersonSession
}
