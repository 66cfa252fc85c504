// Logins of the command line: a person agrees in the browser, and the browser hands a code to the port on which the command line listens. Only the program that
// made the verifier can exchange the code (PKCE, RFC 7636), once, within a minute. Codes are documents, because another node may get the exchange.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { DocumentStore } from '../../../store/port/documents.ts'
import { hashOf } from './person-documents.ts'

const KIND = 'person-cli-login'
const CODE_MS = 60_000

export interface CommandLineLogin {
  personId: string
  /** The session in which the person agreed. The exchange fails if it has ended. */
  sessionKey: string
  /** The SHA-256 of the verifier, in base64url. */
  challenge: string
  /** The name of the token, such as the name of the computer. */
  name: string
}

export class CommandLineLogins {
  readonly #documents: DocumentStore
  readonly #nowMs: () => number

  constructor(documents: DocumentStore, nowMs: () => number) {
    this.#documents = documents
    this.#nowMs = nowMs
  }

  /** Returns the code. */
  async agree(login: CommandLineLogin): Promise<string> {
    const code = randomBytes(32).toString('base64url')
    const atMs = this.#nowMs() + CODE_MS
    await this.#documents.update(KIND, [], () => new Map([[hashOf(code), { atMs, doc: { ...login } }]]))
    await this.#documents.drop(KIND, { beforeMs: this.#nowMs() })
    return code
  }

  /** Null if the code is unknown, was used or has expired, or if the verifier is another. A code that was tried is gone. */
  async redeem(code: string, verifier: string): Promise<CommandLineLogin | null> {
    const key = hashOf(code)
    let found: { atMs: number; login: CommandLineLogin } | null = null
    await this.#documents.update(KIND, [key], (stored) => {
      const document = stored.get(key)
      found = document === undefined ? null : { atMs: document.atMs, login: document.doc as unknown as CommandLineLogin }
      return document === undefined ? new Map() : new Map([[key, null]])
    })
    const { atMs, login } = (found ?? {}) as Partial<{ atMs: number; login: CommandLineLogin }>
    if (login === undefined || atMs === undefined || atMs <= this.#nowMs()) return null
    const given = createHash('sha256').update(verifier).digest()
    const expected = Buffer.from(login.challenge, 'base64url')
    return given.length === expected.length && timingSafeEqual(given, expected) ? login : null
  }
}
