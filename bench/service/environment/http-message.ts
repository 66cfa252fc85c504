// Finds the end of an HTTP/1.1 message in a buffer, which is all that the load generator and the receiver need. Minimal on
// purpose, because both share two cores with what they measure: node:http costs about three times as much per message.

const HEAD_END = Buffer.from('\r\n\r\n')
const LENGTH = /\r\ncontent-length: *(\d+)/i

export interface Framed {
  bodyStart: number
  end: number
}

/** Returns undefined while the message is incomplete. The caller must make sure that bodies have a Content-Length. */
export function frame(buffer: Buffer, start: number): Framed | undefined {
  const headEnd = buffer.indexOf(HEAD_END, start)
  if (headEnd === -1) return undefined
  const head = buffer.toString('latin1', start, headEnd)
  const length = LENGTH.exec(head)?.[1]
  if (length === undefined) throw new Error(`no Content-Length: ${head}`)
  const bodyStart = headEnd + HEAD_END.length
  const end = bodyStart + Number(length)
  return end <= buffer.length ? { bodyStart, end } : undefined
}

/** The clock that all processes of a machine share, in milliseconds. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
