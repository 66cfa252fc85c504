// Sends emails by SMTP, with the interface of the HTTP client, so that everything above it works as for requests. Addresses are checked by the guard when
// they are dialled, one deadline covers everything until the email is sent, another one the reply after that, and nothing is sent without TLS and a valid
// certificate. nodemailer speaks the protocol over the connection that it is given; it is loaded with the first email (docs/decisions/0134-email-by-smtp.md).

import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { EMAIL_CONFIRMATION_MS } from '../../../destinations/webhook/email/email-request.ts'
import { mailServerOf } from '../../../destinations/webhook/email/mail-server.ts'
import { type Outcome, REASONS, type ReasonCode } from '../../link/outcome.ts'
import type { HttpClient, HttpClientOptions, SendRequest } from '../http/attempt.ts'
import { type Connection, DialError } from '../http/connection.ts'
import { Connections } from '../http/connections.ts'
import type { LimitedConnection } from './limited-connection.ts'
import {
  credentialsOf,
  headerOf,
  isMailError,
  reasonOfMailError,
  refusedRecipients,
  replyHider,
  replyOf,
  shownReply,
} from './mail-problems.ts'

/** Always the same, so that mail servers do not learn the name of the host. Some accept no name without a domain. */
const EHLO_NAME = '[127.0.0.1]'
const PIECE_BYTES = 65_536

export interface MailClientOptions extends HttpClientOptions {
  /** Default: EMAIL_CONFIRMATION_MS. */
  confirmationMs?: number | undefined
  /** How long the server may take to answer the goodbye. Default: 1,000. */
  goodbyeMs?: number | undefined
}

interface Limits {
  confirmationMs: number
  goodbyeMs: number
}

export function createMailClient(options: MailClientOptions): HttpClient {
  const { guard, lookup, ca, closeGraceMs = 5_000, confirmationMs = EMAIL_CONFIRMATION_MS, goodbyeMs = 1_000 } = options
  const limits = { confirmationMs, goodbyeMs }
  const connections = new Connections({ guard, lookup, ca })
  const underWay = new Set<MailAttempt>()
  let isClosing = false
  let onIdle: (() => void) | null = null

  return {
    get inFlight() {
      return underWay.size
    },
    send(request, onOutcome) {
      const attempt = new MailAttempt(connections, request, limits, (outcome) => {
        underWay.delete(attempt)
        onOutcome(outcome)
        if (underWay.size === 0) onIdle?.()
      })
      underWay.add(attempt)
      if (isClosing) attempt.fail('aborted')
      else void attempt.run()
    },
    async close() {
      isClosing = true
      if (underWay.size > 0) {
        const grace = setTimeout(() => {
          for (const attempt of underWay) attempt.fail('aborted')
        }, closeGraceMs)
        await new Promise<void>((resolve) => {
          onIdle = resolve
        })
        clearTimeout(grace)
      }
      connections.discardAll()
    },
  }
}

interface Written {
  envelope: { from: string; to: string[]; size: number }
  /** It keeps nothing that has been read, so the email is not in memory while the server confirms it. */
  content: Readable
}

/** Returns a stream of small pieces, so that it ends only after the server has read nearly all of them. */
function inPieces(bytes: Buffer): Readable {
  let left = bytes
  return new Readable({
    read() {
      const piece = left.subarray(0, PIECE_BYTES)
      left = left.length > PIECE_BYTES ? left.subarray(PIECE_BYTES) : Buffer.alloc(0)
      this.push(piece.length === 0 ? null : piece)
    },
  })
}

class MailAttempt {
  readonly #connections: Connections
  readonly #request: SendRequest
  readonly #limits: Limits
  readonly #onOutcome: (outcome: Outcome) => void
  readonly #hide: (text: string) => string
  readonly #startedAtMs = performance.now()
  #deadline: NodeJS.Timeout | undefined
  #connection: Connection | null = null
  #smtp: LimitedConnection | null = null
  #doing = 'the email was being written'
  /** Set as soon as it is known. */
  #outcome: Outcome | null = null
  #isOver = false

  constructor(connections: Connections, request: SendRequest, limits: Limits, onOutcome: (outcome: Outcome) => void) {
    this.#connections = connections
    this.#request = request
    this.#limits = limits
    this.#onOutcome = onOutcome
    this.#hide = replyHider(credentialsOf(request))
    this.#setDeadline(request.timeoutMs)
  }

  /** Never rejects. */
  async run(): Promise<void> {
    try {
      const written = await this.#written()
      if (typeof written === 'string') return this.fail('mail_invalid', written)
      const smtp = await this.#connected()
      await this.#login(smtp)
      await this.#sent(smtp, written)
    } catch (error) {
      this.#failWith(error)
    }
  }

  /** Returns a sentence if there is no such email. Whatever the JSON contains, it is a mistake of the settings and not of the receiver or of the service. */
  async #written(): Promise<Written | string> {
    const { emailOf, writtenEmail } = await import('./email.ts')
    try {
      const email = emailOf(this.#request.body.toString())
      if (typeof email === 'string') return email
      const bytes = await writtenEmail(email, headerOf(this.#request, 'message-id') ?? '', new Date())
      return { envelope: { from: email.from.address, to: [...email.to], size: bytes.length }, content: inPieces(bytes) }
    } catch {
      return REASONS.mail_invalid[1]
    }
  }

  async #connected(): Promise<LimitedConnection> {
    const { LimitedConnection } = await import('./limited-connection.ts')
    const server = mailServerOf(this.#request.url)
    if (server === null) throw new DialError('invalid_request')
    const { hostname, port, secure, dialUrl } = server
    const { tls = null, timeoutMs } = this.#request
    if (this.#outcome !== null) throw new DialError('aborted')
    const connection = this.#connections.open(this.#connections.originOf(dialUrl))
    this.#connection = connection
    this.#doing = 'connecting to the mail server'
    const socket = await new Promise<Socket>((resolve, reject) => {
      void connection.dial((error, dialled) => (dialled === null ? reject(error) : resolve(dialled)))
    })
    const smtp = new LimitedConnection({
      connection: socket,
      host: hostname,
      port,
      name: EHLO_NAME,
      secure,
      requireTLS: true,
      tls: { secureContext: this.#connections.secureContext({ tls }), rejectUnauthorized: true },
      // The deadlines of the attempt end it sooner.
      connectionTimeout: timeoutMs,
      greetingTimeout: timeoutMs,
      socketTimeout: timeoutMs + this.#limits.confirmationMs,
    })
    this.#smtp = smtp
    this.#doing = 'the mail server was being greeted'
    await new Promise<void>((resolve, reject) => {
      // Emitted also later, if the connection is lost.
      smtp.on('error', (error: Error) => {
        reject(error)
        this.#failWith(error)
      })
      smtp.connect((error) => (error == null ? resolve() : reject(error)))
    })
    return smtp
  }

  #login(smtp: LimitedConnection): Promise<void> {
    const credentials = credentialsOf(this.#request)
    if (credentials === null) return Promise.resolve()
    this.#doing = 'logging in at the mail server'
    return new Promise((resolve, reject) => {
      smtp.login({ credentials }, (error) => (error === null ? resolve() : reject(error)))
    })
  }

  #sent(smtp: LimitedConnection, { envelope, content }: Written): Promise<void> {
    this.#doing = 'the email was being sent'
    // An email that is sent again because the server takes long to check it arrives twice, so the server gets more time for this reply.
    content.once('end', () => {
      this.#doing = 'waiting for the mail server to confirm the email'
      if (this.#outcome === null) this.#setDeadline(this.#limits.confirmationMs)
    })
    return new Promise((resolve, reject) => {
      smtp.send(envelope, content, (error, info) => {
        if (error !== null) return reject(error)
        const refused = refusedRecipients(info?.rejectedErrors ?? [])
        const reply = refused ?? (this.#request.keepAnswer === true ? info?.response : undefined)
        this.#settle('success', null, null, shownReply(reply, this.#hide))
        resolve()
      })
    })
  }

  #setDeadline(ms: number): void {
    clearTimeout(this.#deadline)
    this.#deadline = setTimeout(() => this.fail('timeout', `The deadline of ${ms} ms passed while ${this.#doing}.`), ms)
  }

  /** Ends it. If the outcome is known already, nothing is waited for any longer. */
  fail(reason: ReasonCode, sentence: string = REASONS[reason][1], reply: string | null = null): void {
    if (this.#outcome === null) this.#settle(REASONS[reason][0], reason, sentence, reply)
    else this.#end()
  }

  #failWith(error: unknown): void {
    if (error instanceof DialError) this.fail(error.reason)
    else if (isMailError(error)) this.fail(reasonOfMailError(error), undefined, shownReply(replyOf(error), this.#hide))
    // A bug.
    else this.fail('internal_error')
  }

  #settle(verdict: Outcome['verdict'], reason: string | null, error: string | null, responseStart: string | null): void {
    clearTimeout(this.#deadline)
    const { address = null, dnsMs = null, connectMs = null } = this.#connection ?? {}
    const timings = { dnsMs, connectMs, tlsMs: null, firstByteMs: null, totalMs: performance.now() - this.#startedAtMs }
    this.#outcome = { verdict, status: null, reason, error, address, timings, retryAfterMs: null, responseStart }
    if (verdict === 'success') this.#sayGoodbye()
    else this.#end()
  }

  /** The attempt counts as in flight until the connection is closed, because mail servers limit how many there are. */
  #sayGoodbye(): void {
    this.#deadline = setTimeout(() => this.#end(), this.#limits.goodbyeMs)
    this.#smtp?.once('end', () => this.#end())
    this.#smtp?.quit()
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#deadline)
    this.#smtp?.close()
    this.#connection?.discard()
    this.#onOutcome(this.#outcome as Outcome)
  }
}
