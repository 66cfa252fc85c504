// What the client needs of the runtime it is in. Two answers exist, chosen by the `#platform` import condition: Node's
// own modules, or the web's globals where there is nothing else. Everything else in this package runs on both.

import type { Spool, SpoolPlace } from '../queue/spool.ts'
import type { Transport } from '../send/transport.ts'

/** A client, as the process's end sees it. */
export interface ExitTarget {
  /** Messages that a process which ends now would lose: on the way, and not on disk. */
  readonly unsafeMessages: number
  /** Starts sending what is queued. */
  sendNow(): void
  /** Sends all there is and all that still comes, within the target's own time; then closes, unless it is to stay open. */
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
  concat(parts: Uint8Array[]): Uint8Array
  base64(bytes: Uint8Array, alphabet: 'base64' | 'base64url'): string
  gzip(bytes: Uint8Array): Promise<Uint8Array>
  /** Throws for what is not a private key in PEM. */
  signer(pem: string): JwtSigner
  transport(maxConnections: number): Transport
  /** Opens a spool, or throws where there is no disk. */
  spool(place: SpoolPlace, report: (error: unknown) => void): Spool
  /** A timer that does not keep the process alive, where a process's end can be seen coming. */
  idleTimer(run: () => void, ms: number): ReturnType<typeof setTimeout>
  /** Memory this process may use, if known. */
  memoryLimitBytes(): number | undefined
  warn(text: string): void
  /** While kept, a target is sent when the process runs out of other work. */
  keep(target: ExitTarget): void
  letGo(target: ExitTarget): void
  /** Drains a target on SIGTERM and SIGINT; gives the way to stop doing so. */
  handleSignals(target: ExitTarget): () => void
}
