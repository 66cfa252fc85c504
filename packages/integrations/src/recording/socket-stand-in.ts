// Replaces the socket of a request: a stream with the methods of a socket that HTTP clients call.

import { Duplex } from 'node:stream'

export class SocketStandIn extends Duplex {
  readonly encrypted = true
  readonly authorized = true
  readonly connecting = false
  readonly remoteAddress = undefined

  setTimeout(): this {
    return this
  }
  setNoDelay(): this {
    return this
  }
  setKeepAlive(): this {
    return this
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
}
