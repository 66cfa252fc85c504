// The connection of a request in a preview. The request is written as it would be sent, into nothing, and gets an empty answer.

import type { Duplex } from 'node:stream'
import { SocketStandIn } from './socket-stand-in.ts'

export const ANSWER_IN_PREVIEW = '{}'

const ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${ANSWER_IN_PREVIEW.length}\r\nconnection: close\r\n\r\n${ANSWER_IN_PREVIEW}`

/** For the option `createConnection` of `http.request`. */
export function previewConnection(): Duplex {
  let isAnswered = false
  const connection = new SocketStandIn({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      // Some clients, S3's for one, send the body only after this.
      if (/^expect: *100-continue\r$/im.test(chunk.toString('latin1'))) this.push('HTTP/1.1 100 Continue\r\n\r\n')
      done()
      if (isAnswered) return
      isAnswered = true
      // After the whole request is written, as far as it is written at once. Node.js accepts an answer before the end of a longer one too.
      setImmediate(() => connection.destroyed || connection.push(ANSWER))
    },
    final(done) {
      done()
    },
  })
  return connection
}
