// What a receiver configures, checked before any request is looked at: a mistake here is the program's, throws TypeError,
// and must never weaken a check silently. No request data belongs here.

import { parseSigningSecrets } from './signing-secrets.ts'
import { requireSharedSecret } from './x-signature.ts'

export interface VerifyOptions {
  /** The destination's sharedSecret. When given, X-Signature is required and must match. */
  sharedSecret?: string
  /** `whsec_…`, one or several. When given, the Standard Webhooks headers are required and must match any one of them. */
  signingSecrets?: string | readonly string[]
  /**
   * Accepts a batch of which X-Signature proves only the first message, with `coverage: 'first_message'`. Anybody who has
   * seen one signed message can append others. Default: false, which refuses such a batch.
   */
  allowUnprovenMessages?: boolean | undefined
  /** How far webhook-timestamp may lie from now, in either direction. 300 unless set. */
  toleranceSeconds?: number | undefined
  /** Largest body read or accepted. 1 MiB unless set. */
  maxBodyBytes?: number | undefined
  /** How long the whole body may take to arrive, where it is still to be read. 10,000 unless set. */
  timeoutMs?: number | undefined
  /** The clock, in milliseconds since the epoch. Date.now unless set. */
  now?: (() => number) | undefined
}

export interface VerifySettings {
  sharedSecret: string | undefined
  /** Empty when Standard Webhooks is not configured. */
  signingKeys: Uint8Array[]
  allowUnprovenMessages: boolean
  toleranceSeconds: number
  maxBodyBytes: number
  timeoutMs: number
  now: () => number
}

export const DEFAULTS = { toleranceSeconds: 300, maxBodyBytes: 1024 * 1024, timeoutMs: 10_000 } as const

/** The longest delay that setTimeout does not turn into one millisecond. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1

export function parseVerifyOptions(options: VerifyOptions): VerifySettings {
  if (typeof options !== 'object' || options === null) throw new TypeError('options must be an object.')
  const { sharedSecret, signingSecrets, allowUnprovenMessages = false, now = Date.now } = options
  const { toleranceSeconds = DEFAULTS.toleranceSeconds, maxBodyBytes = DEFAULTS.maxBodyBytes, timeoutMs = DEFAULTS.timeoutMs } = options
  if (sharedSecret === undefined && signingSecrets === undefined) {
    throw new TypeError('sharedSecret or signingSecrets is required: without a secret nothing can be verified.')
  }
  for (const name of ['sharedSecret', 'signingSecrets'] as const) {
    // An environment variable that is not set: the other secret alone would verify less than was meant.
    if (name in options && options[name] === undefined) throw new TypeError(`${name} is given, but undefined.`)
  }
  // The string 'false', as read from an environment variable, must not count as true.
  if (typeof allowUnprovenMessages !== 'boolean') throw new TypeError('allowUnprovenMessages must be true or false.')
  requireNumber('toleranceSeconds', toleranceSeconds, 0, Number.MAX_SAFE_INTEGER)
  requireNumber('maxBodyBytes', maxBodyBytes, 1, Number.MAX_SAFE_INTEGER)
  requireNumber('timeoutMs', timeoutMs, 1, MAX_TIMEOUT_MS)
  if (typeof now !== 'function') throw new TypeError('now must be a function that returns milliseconds since the epoch.')
  return {
    sharedSecret: sharedSecret === undefined ? undefined : requireSharedSecret(sharedSecret),
    signingKeys: signingSecrets === undefined ? [] : parseSigningSecrets(signingSecrets),
    allowUnprovenMessages,
    toleranceSeconds,
    maxBodyBytes,
    timeoutMs,
    now,
  }
}

function requireNumber(name: string, value: unknown, min: number, max: number): void {
  if (typeof value !== 'number' || !(value >= min && value <= max)) throw new TypeError(`${name} must be a number from ${min} to ${max}.`)
}
