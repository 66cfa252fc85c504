// What the sender needs of HTTP: one POST, one answer, one deadline. An answer is data, whatever its status; only a
// request that got no answer throws.

/** An answer's body is a few dozen bytes, or a list of rejected messages; of one that is longer no more is read. */
export const MAX_ANSWER_BYTES = 1024 * 1024

export interface OutgoingRequest {
  url: string
  headers: Record<string, string>
  /** The body, in pieces that are sent as they are: joining them would hold a large batch twice. */
  parts: Uint8Array[]
  bodyText: () => string
  /** From the start of the request to the last byte of the answer. */
  timeoutMs: number
}

export interface Answer {
  status: number
  statusText: string
  /** By lower-case name. */
  headers: Record<string, string>
  text: string
}

export interface Transport {
  send(request: OutgoingRequest): Promise<Answer>
  /** Drops connections; requests under way fail. */
  close(): void
}

export class TimeoutError extends Error {
  constructor(timeoutMs: number) {
    super(`no response within ${timeoutMs} ms (httpRequestTimeout)`)
    this.name = 'TimeoutError'
  }
}
