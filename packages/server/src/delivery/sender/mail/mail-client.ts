// Sends emails by SMTP, with the interface of the HTTP client, so that everything above it works as for requests. Addresses are checked by the guard when
// they are dialled, one deadline covers everything, and nothing is sent without TLS and a valid certificate. nodemailer speaks the protocol over
// the connection that it is given; it is loaded with the first email (docs/decisions/0134-email-by-smtp.md).

import type { Socket } from 'node:net'
import { mailServerOf } from '../../../destinations/webhook/email/mail-server.ts'
import { HIDDEN } from '../../../secrets/hidden-url.ts'
import { type Outcome, REASONS, type ReasonCode } from '../../link/outcome.ts'
import type { HttpClient, HttpClientOptions, SendRequest } from '../http/attempt.ts'
import { type Connection, Connections, DialError } from '../http/connections.ts'
import type { Email } from './email.ts'
import type { LimitedConnection } from './limited-connection.ts'
import { credentialsOf, headerOf, isMailError, reasonOfMailError, refusedRecipients, replyOf } from './mail-problems.ts'

/** How long the server may take to answer the goodbye, which nobody waits for. */
const GOODBYE_MS = 1_000

export function createMailClient({ guard, lookup, ca, closeGraceMs = 5_000 }: HttpClientOptions): HttpClient {
  const connections = new Connections({ guard, lookup, ca })
  const underWay = new Set<MailAttempt>()
  let isClosing = false
  let onIdle: (() => void) | null = null

  return {
    get inFlight() {
      return underWay.size
    },
    send(request, onOutcome) {
      const attempt = new MailAttempt(connections, request, (outcome) => {
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
          for (const attempt of [...underWay]) attempt.fail('aborted')
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
  email: Email
  bytes: Buffer
}

class MailAttempt {
  readonly #connections: Connections
  readonly #request: SendRequest
  readonly #onOutcome: (outcome: Outcome) => void
  readonly #startedAtMs = performance.now()
  readonly #deadline: NodeJS.Timeout
  #connection: Connection | null = null
  #smtp: LimitedConnection | null = null
  #doing = 'the email was being written'
  #settled = false

  constructor(connections: Connections, request: SendRequest, onOutcome: (outcome: Outcome) => void) {
    this.#connections = connections
    this.#request = request
    this.#onOutcome = onOutcome
    this.#deadline = setTimeout(() => {
      this.fail('timeout', `The deadline of ${request.timeoutMs} ms passed while ${this.#doing}.`)
    }, request.timeoutMs)
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
      return { email, bytes: await writtenEmail(email, headerOf(this.#request, 'message-id') ?? '', new Date()) }
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
    if (this.#settled) throw new DialError('aborted')
    const connection = this.#connections.open(this.#connections.originOf(dialUrl))
    this.#connection = connection
    this.#doing = 'connecting to the mail server'
    const socket = await new Promise<Socket>((resolve, reject) => {
      void connection.dial((error, dialled) => (dialled === null ? reject(error as Error) : resolve(dialled)))
    })
    const smtp = new LimitedConnection({
      connection: socket,
      host: hostname,
      port,
      secure,
      requireTLS: true,
      tls: { secureContext: this.#connections.secureContext({ tls }), rejectUnauthorized: true },
      // The deadline of the attempt ends it sooner.
      connectionTimeout: timeoutMs,
      greetingTimeout: timeoutMs,
      socketTimeout: timeoutMs,
    })
    this.#smtp = smtp
    this.#doing = 'the mail server was being greeted'
    await new Promise<void>((resolve, reject) => {
      // Emitted also later, if the connection is lost.
      smtp.on('error', (error) => {
        reject(error)
        this.#failWith(error)
      })
      smtp.connect((error) => (error == null ? resolve() : reject(error)))
    })
    return smtp
  }

  #login(smtp: LimitedConnection): Promise<void> {
    const [user, pass] = credentialsOf(this.#request)
    if (user === '') return Promise.resolve()
    this.#doing = 'logging in at the mail server'
    return new Promise((resolve, reject) => {
      smtp.login({ credentials: { user, pass } }, (error) => (error === null ? resolve() : reject(error)))
    })
  }

  #sent(smtp: LimitedConnection, { email: { from, to }, bytes }: Written): Promise<void> {
    this.#doing = 'the email was being sent'
    return new Promise((resolve, reject) => {
      smtp.send({ from: from.address, to: [...to], size: bytes.length }, bytes, (error, info) => {
        if (error !== null) return reject(error)
        const refused = refusedRecipients(info?.rejectedErrors ?? [])
        const answer = this.#request.keepAnswer === true ? replyOf(info?.response) : null
        this.#settle('success', null, null, refused ?? answer)
        resolve()
      })
    })
  }

  fail(reason: ReasonCode, sentence: string = REASONS[reason][1], reply: string | null = null): void {
    this.#settle(REASONS[reason][0], reason, sentence, reply)
  }

  #failWith(error: unknown): void {
    if (error instanceof DialError) this.fail(error.reason)
    else if (isMailError(error)) this.fail(reasonOfMailError(error), undefined, this.#withoutPassword(replyOf(error.response)))
    // A bug.
    else this.fail('internal_error')
  }

  /** Viewers can read the start of a response. */
  #withoutPassword(reply: string | null): string | null {
    const [user, pass] = credentialsOf(this.#request)
    if (reply === null || pass === '') return reply
    const forms = [pass, ...[pass, `\0${user}\0${pass}`].map((text) => Buffer.from(text).toString('base64'))]
    return forms.reduce((text, form) => text.replaceAll(form, HIDDEN), reply)
  }

  #settle(verdict: Outcome['verdict'], reason: string | null, error: string | null, responseStart: string | null): void {
    if (this.#settled) return
    this.#settled = true
    clearTimeout(this.#deadline)
    const { address = null, dnsMs = null, connectMs = null } = this.#connection ?? {}
    const timings = { dnsMs, connectMs, tlsMs: null, firstByteMs: null, totalMs: performance.now() - this.#startedAtMs }
    this.#hangUp(verdict === 'success')
    this.#onOutcome({ verdict, status: null, reason, error, address, timings, retryAfterMs: null, responseStart })
  }

  #hangUp(isPolite: boolean): void {
    const [smtp, connection] = [this.#smtp, this.#connection]
    const end = (): void => {
      smtp?.close()
      connection?.discard()
    }
    if (!isPolite) return end()
    smtp?.quit()
    setTimeout(end, GOODBYE_MS).unref()
  }
}
