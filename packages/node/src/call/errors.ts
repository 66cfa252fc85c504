// The client's error class and its stable codes. An error is reported as an `error` event and to the callback of the call.
// A call never throws: analytics must not break the application's own request.

import type { RefusalCode } from '@switchyard/protocol'
import type { Context } from './context.ts'

export const CLIENT_ERRORS = {
  invalid_settings: 'A setting is missing or invalid. Thrown by the constructor; field names the setting.',
  not_serializable:
    'The message cannot be converted to JSON, for example because of a circular reference, a BigInt or a getter that throws.',
  timestamp_invalid:
    'The timestamp is not a valid date. The message is sent with the time of the call instead; with historical: true it is rejected.',
  queue_full:
    'The queue or the spool is full (maxQueueBytes, spool.maxBytes), so the message was rejected. When a call returns false, wait for the drained event before the next call.',
  call_after_close: 'The call was made after the client was closed, so the message was rejected.',
  close_timeout: 'The client was closed before the message could be delivered.',
  delivery_failure: 'The tracking API rejected the request, or every retry failed; reason has the details.',
  oauth_failure: 'The client could not get an access token from the authorization server; reason has the details.',
  plugin_failed: 'A plugin threw, or was still running at close. If a before or enrichment plugin throws, the message is not sent.',
  plugin_cancelled: 'A plugin cancelled the message with ctx.cancel().',
  plugin_load_failed: 'A plugin is invalid, or its load() or unload() failed; the plugin is not in use.',
  spool_failed: 'The spool folder could not be read or written; messages are kept in memory only.',
  spool_without_key:
    'The spool folder contains messages from version 0.1, which do not contain their write key and are not sent; the error message says how to recover them.',
  listener_failed: 'A callback or an event listener threw.',
} as const

export type ClientErrorCode = keyof typeof CLIENT_ERRORS

/** A code of the client, a code that client and service share, or the code with which the service rejected a message. */
export type ErrorCode = ClientErrorCode | RefusalCode | (string & {})

export interface AnalyticsErrorDetails {
  /** The underlying error. Plugins and HTTP clients may throw anything; a value that is not an Error is wrapped in one. */
  reason?: unknown
  ctx?: Context | undefined
  /** The invalid field of the message, or the invalid setting. */
  field?: string | undefined
  /** HTTP status of the tracking API's last response. */
  status?: number | undefined
}

/** An error of the client: thrown by the constructor; otherwise emitted as the `error` event and passed to the call's callback. */
export class AnalyticsError extends Error {
  /** A stable code for programs, such as `queue_full`. */
  readonly code: ErrorCode
  /** The underlying error. If the client itself rejected the message, this is an error with the same text. */
  readonly reason: Error
  /** The context of the message that failed, if the error is about one message. */
  readonly ctx?: Context
  /** The invalid field of the message, or the invalid setting. */
  readonly field: string | undefined
  /** HTTP status of the tracking API's last response, if there was one. */
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

  /** Returns a copy of this error for one message. */
  about(ctx: Context): AnalyticsError {
    // Not `new AnalyticsError`: bundlers rename a class that refers to itself, and logs show the changed name.
    const ErrorClass = this.constructor as typeof AnalyticsError
    return new ErrorClass(this.code, this.message, { reason: this.reason, ctx, field: this.field, status: this.status })
  }
}

/** Also checks the `[object Error]` tag, because test runners such as Jest run code in a context with its own Error class. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
}

function asError(reason: unknown, message: string): Error {
  if (isError(reason)) return reason
  if (reason === undefined) return new Error(message)
  return new Error(typeof reason === 'string' ? reason : message, { cause: reason })
}

/** Returns the text of anything that was thrown. Never throws, even for a value that cannot be converted to a string. */
export function messageOf(error: unknown): string {
  try {
    return isError(error) ? error.message : String(error)
  } catch {
    return 'unknown error: the thrown value cannot be converted to text'
  }
}
