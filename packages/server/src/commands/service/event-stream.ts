// Parses server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html

export interface StreamEvent {
  id: string | undefined
  event: string
  data: string
}

/** The service never sends a larger event. */
const MAX_EVENT_CHARS = 4 * 1024 * 1024

export async function* parseEvents(bytes: AsyncIterable<Uint8Array>): AsyncIterable<StreamEvent> {
  const decoder = new TextDecoder()
  let rest = ''
  let id: string | undefined
  let event = ''
  let data: string[] = []
  for await (const chunk of bytes) {
    rest += decoder.decode(chunk, { stream: true })
    if (rest.length > MAX_EVENT_CHARS) throw new Error('an event of the stream is too large')
    // A CR at the end may be the first half of a CRLF.
    const lines = rest.split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop() as string
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) yield { id, event: event === '' ? 'message' : event, data: data.join('\n') }
        event = ''
        data = []
        continue
      }
      const colon = line.indexOf(':')
      const field = colon === -1 ? line : line.slice(0, colon)
      const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
      if (field === 'data') data.push(value)
      else if (field === 'event') event = value
      else if (field === 'id' && !value.includes('\0')) id = value
    }
  }
}
