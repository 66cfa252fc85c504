// What the client needs from the runtime. There are two implementations, chosen by the conditions of the `#platform` import:
// Node.js modules, or web APIs only. Everything else in this package runs on both.

import type { Transport } from '../http/transport.ts'
import type { Spool, SpoolPlace } from '../spool.ts'

/** A client, as seen by the code that handles the end of the process. */
export interface ExitTarget {
  /** Number of messages that would be lost if the process ended now: pending and not on disk. */
  readonly unsafeMessages: number
  /** Starts sending the queued messages. */
  sendNow(): void
  /** Sends all messages, including those of calls made meanwhile, within the time limit of the target; then closes it, unless `stayOpen`. */
  shutDown(stayOpen: boolean): Promise<unknown>
}

export interface JwtSigner {
  alg: string
  sign(input: string): Promise<Uint8Array>
}

export interface Platform {
  newId(): string
  byteLength(text: string): number
  encode(text: string): Uint8Array
  decode(bytes: Uint8Array): string
  /** Memory for write(), with any content. */
  allocate(bytes: number): Uint8Array<ArrayBuffer>
  /** Writes the text as UTF-8. `into` must come from allocate() and have room for it. */
  write(text: string, into: Uint8Array, at: number): void
  base64(bytes: Uint8Array, alphabet: 'base64' | 'base64url'): string
  gzip(bytes: Uint8Array): Promise<Uint8Array>
  /** Throws if the text is not a supported private key in PEM format. */
  signer(pem: string): JwtSigner
  transport(maxConnections: number): Transport
  /** Opens a spool. Throws if there is no file system. */
  spool(place: SpoolPlace, report: (error: unknown) => void): Spool
  /** Starts a timer that does not keep the process alive, if the platform can detect the end of the process. */
  idleTimer(run: () => void, ms: number): ReturnType<typeof setTimeout>
  /** Memory that this process may use, if known. */
  memoryLimitBytes(): number | undefined
  warn(text: string): void
  /** Makes the process send the messages of a target when it has no other work, until unwatchExit() is called. */
  watchExit(target: ExitTarget): void
  unwatchExit(target: ExitTarget): void
  /** Shuts a target down on SIGTERM and SIGINT. Returns a function that stops doing so. */
  handleSignals(target: ExitTarget): () => void
}
