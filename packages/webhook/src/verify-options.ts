// The receiver's options, checked before the request: a mistake here is in the program, throws TypeError, and must never
// weaken a check silently. No request data belongs here.

import type { KeyObject } from 'node:crypto'
import { parseSigningSecrets } from './signing-secrets.ts'
import { requireSharedSecret } from './x-signature.ts'

export interface VerifyOptions {
  /** The destination's shared secret. If set, X-Signature is required and must match. */
  sharedSecret?: string
  /** One or several `whsec_…` secrets. If set, the Standard Webhooks headers are required and must match one of the secrets. */
  signingSecrets?: string | readonly string[]
  /**
   * Accepts a batch of which X-Signature proves only the first message, with `coverage: 'first_message'`. Anybody who has
   * seen one signed message can append forged ones. Default: false, which rejects such a batch.
   */
  allowUnprovenMessages?: boolean | undefined
  /** Maximum difference in seconds between webhook-timestamp and the current time, in either direction. Default: 300. */
  toleranceSeconds?: number | undefined
  /** Maximum size of the body in bytes. Default: 1 MiB. */
  maxBodyBytes?: number | undefined
  /** Maximum time in milliseconds until the whole body has arrived, if it has not been read yet. Default: 10,000. */
  timeoutMs?: number | undefined
  /** Returns the current time in milliseconds since the epoch. Default: Date.now. */
  now?: (() => number) | undefined
}

export interface VerifySettings {
  sharedSecret: string | undefined
  /** Empty if Standard Webhooks is not configured. */
  signingKeys: KeyObject[]
  allowUnprovenMessages: boolean
  toleranceSeconds: number
  maxBodyBytes: number
  timeoutMs: number
  now: () => number
}

export const DEFAULTS = { toleranceSeconds: 300, maxBodyBytes: 1024 * 1024, timeoutMs: 10_000 } as const

/** The longest delay that setTimeout supports; it turns a longer one into one millisecond. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1

export function parseVerifyOptions(options: VerifyOptions): VerifySettings {
  if (typeof options !== 'object' || options === null) throw new TypeError('options must be an object.')
  const { sharedSecret, signingSecrets, allowUnprovenMessages = false, now = Date.now } = options
  const { toleranceSeconds = DEFAULTS.toleranceSeconds, maxBodyBytes = DEFAULTS.maxBodyBytes, timeoutMs = DEFAULTS.timeoutMs } = options
  if (sharedSecret === undefined && signingSecrets === undefined) {
    throw new TypeError('sharedSecret or signingSecrets is required: pass the secret of the destination.')
  }
  for (const name of ['sharedSecret', 'signingSecrets'] as const) {
    // Probably an environment variable that is not set. Using only the other secret would verify less than intended.
    if (name in options && options[name] === undefined)
      throw new TypeError(`${name} is undefined: set the secret, for example in an environment variable, or leave the option out.`)
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
