// The connection of nodemailer, with a limit of what a server may send: nodemailer limits each reply, but neither their number nor empty lines, and goes
// on reading what it has queued after the end. This uses internals of nodemailer, whose version is therefore exact in package.json. Loaded with
// the first email.

/* oxlint-disable eslint/no-underscore-dangle -- the names are nodemailer's */

import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { MAX_RECEIVED_BYTES } from '../../../destinations/webhook/email/email-request.ts'

/** More than the replies to the commands that nodemailer sends at once: one for each recipient, and two. */
const MAX_QUEUED_REPLIES = 100
/** Of one reply. */
const MAX_REPLY_BYTES = 65_536

interface Internals {
  /** Lines that were received and not yet read, also empty ones. */
  _responseQueue: string[]
  /** The start of a line. */
  _remainder: string
  _onData(chunk: Buffer): void
  _onError(error: Error, code: string, response: false, command: string): void
}

const Base = SMTPConnection as unknown as new (options: SMTPConnection.Options) => SMTPConnection & Internals

export class LimitedConnection extends Base {
  #receivedBytes = 0

  constructor(options: SMTPConnection.Options) {
    super({ ...options, maxResponseSize: MAX_REPLY_BYTES })
  }

  /** Called for what was received, and with TLS for what was decrypted. */
  override _onData(chunk: Buffer): void {
    this.#receivedBytes += chunk.length
    if (this.#receivedBytes <= MAX_RECEIVED_BYTES) super._onData(chunk)
    if (this.#receivedBytes > MAX_RECEIVED_BYTES || this._responseQueue.length > MAX_QUEUED_REPLIES)
      this._onError(new Error('The server sends too much'), 'EPROTOCOL', false, 'CONN')
  }

  override close(): void {
    super.close()
    this._responseQueue = []
    this._remainder = ''
  }
}
