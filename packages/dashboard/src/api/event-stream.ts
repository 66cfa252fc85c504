// Parses server-sent events from text, chunk by chunk as it arrives. Pure.

export interface StreamEvent {
  event: string
  data: string
}

/** No event of the service is larger than this. */
const MAX_REST = 4 * 1024 * 1024

export class EventParser {
  #rest = ''
  #event = ''
  #data: string[] = []

  /** Returns the events that are complete with this chunk. */
  take(text: string): StreamEvent[] {
    this.#rest += text
    if (this.#rest.length > MAX_REST) throw new Error('An event of the stream is too large.')
    // A CR at the end may be the first half of a CRLF.
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/)
    this.#rest = lines.pop() ?? ''
    const events: StreamEvent[] = []
    for (const line of lines) {
      if (line !== '') {
        this.#field(line)
        continue
      }
      if (this.#data.length > 0) events.push({ event: this.#event === '' ? 'message' : this.#event, data: this.#data.join('\n') })
      this.#event = ''
      this.#data = []
    }
    return events
  }

  #field(line: string): void {
    const colon = line.indexOf(':')
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'data') this.#data.push(value)
    else if (name === 'event') this.#event = value
  }
}
