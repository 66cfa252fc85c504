// Every way in which a message or the client can fail, as one class with a stable code. An error reaches people twice:
// as the `error` event and in the call's callback. It is never thrown out of a call: analytics must not break a request.

import type { RefusalCode } from '@switchyard/protocol'
import type { Context } from './call/context.ts'

export const CLIENT_ERRORS = {
  invalid_settings: 'A setting is missing or malformed; thrown by the constructor.',
  not_serializable: 'The call holds something JSON cannot: a circular reference, a BigInt, a throwing getter.',
  timestamp_invalid: 'The timestamp is no time. The message was taken, with the time of the call; with the setting historical it was not.',
  queue_full: 'The queue (or the spool) has reached its limit in bytes; the message was not taken.',
  call_after_close: 'The call came after close; the message was not taken.',
  close_timeout: 'The client was closed before the message could be delivered.',
  delivery_failure: 'The tracking API refused the request, or every retry failed; reason says how.',
  oauth_failure: 'No access token could be had from the authorization server; reason says why.',
  plugin_failed: 'A plugin threw, or was still running at close. If a before or enrichment plugin throws, the message is not sent.',
  plugin_cancelled: 'A plugin cancelled the message with ctx.cancel().',
  plugin_load_failed: 'A plugin’s load() or unload() failed; the plugin is not in use.',
  spool_failed: 'The spool folder could not be read or written; messages go on in memory.',
  spool_without_key: 'The spool folder holds messages from version 0.1, which do not contain their write key; they are not sent.',
  listener_failed: 'A callback or an event listener threw.',
} as const

export type ClientErrorCode = keyof typeof CLIENT_ERRORS

/** A client code, a code the client and the service share, or whatever code the service gave for one message. */
export type ErrorCode = ClientErrorCode | RefusalCode | (string & {})

export interface AnalyticsErrorDetails {
  /** The underlying error. Plugins and HTTP clients may throw anything; a value that is not an Error is wrapped in one. */
  reason?: unknown
  ctx?: Context | undefined
  /** The field of the message at fault. */
  field?: string | undefined
  /** HTTP status of the tracking API's last answer. */
  status?: number | undefined
}

export class AnalyticsError extends Error {
  readonly code: ErrorCode
  /** The underlying error. If the client itself refused the message, this is an error with the same text. */
  readonly reason: Error
  readonly ctx?: Context
  readonly field: string | undefined
  readonly status: number | undefined

  constructor(code: ErrorCode, message: string, details: AnalyticsErrorDetails = {}) {
    super(message, details.reason === undefined ? undefined : { cause: details.reason })
    this.name = 'AnalyticsError'
    this.code = code
    this.reason = asError(details.reason, message)
    if (details.ctx) this.ctx = details.ctx
    this.field = details.field
    this.status = details.status
  }

  /** The same failure, told of one message. */
  about(ctx: Context): AnalyticsError {
    // By its constructor and not by its name: a bundler renames a class that names itself, and logs show that name.
    const Same = this.constructor as typeof AnalyticsError
    return new Same(this.code, this.message, { reason: this.reason, ctx, field: this.field, status: this.status })
  }
}

/** Also checks the tag, because test runners such as Jest run code in a context with its own Error class. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
}

function asError(reason: unknown, message: string): Error {
  if (isError(reason)) return reason
  if (reason === undefined) return new Error(message)
  return new Error(typeof reason === 'string' ? reason : message, { cause: reason })
}

/** For people. Total: what strangers' code throws may have no text at all. */
export function messageOf(error: unknown): string {
  try {
    return isError(error) ? error.message : String(error)
  } catch {
    return 'something that has no text'
  }
}
