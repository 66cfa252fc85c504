// The HTTP interface that the sender needs: one POST with one timeout. A response is returned whatever its status; only a
// request without a complete response throws.

/** A response body is a few dozen bytes, or a list of rejected messages. A longer one is not read further. */
export const MAX_ANSWER_BYTES = 1024 * 1024

export interface OutgoingRequest {
  url: string
  headers: Record<string, string>
  body: Uint8Array
  bodyText: () => string
  /** From the start of the request to the last byte of the response. */
  timeoutMs: number
}

export interface Answer {
  status: number
  statusText: string
  /** Names are in lower case. */
  headers: Record<string, string>
  text: string
  /** True if nothing reads the body of the request any more, so that its memory can be used again. */
  isBodyFree: boolean
}

export interface Transport {
  send(request: OutgoingRequest): Promise<Answer>
  /** Closes all connections; requests in flight fail. */
  close(): void
}

export class TimeoutError extends Error {
  constructor(timeoutMs: number) {
    super(`no response within ${timeoutMs} ms (httpRequestTimeout)`)
    this.name = 'TimeoutError'
  }
}
