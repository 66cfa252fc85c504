// Refuses every dial of a preview, also those of raw sockets (Kafka, SFTP), and notes for a run which connection failed: clients of such protocols report
// a failure of the network as an error of their own.

import dns from 'node:dns'
import net from 'node:net'
import { codeOf } from './failures.ts'
import { runs } from './run-trace.ts'

export const PREVIEW_DIAL = 'ERR_PREVIEW_DIAL'

export function installDialWatch(): void {
  const connect = net.Socket.prototype.connect
  net.Socket.prototype.connect = function (this: net.Socket, ...args: unknown[]) {
    const trace = runs.getStore()?.trace
    if (trace?.isPreview === true) {
      const error = previewDial()
      process.nextTick(() => this.destroy(error))
      return this
    }
    if (trace !== undefined) {
      this.once('error', (error) => {
        trace.failedConnection = codeOf(error)
      })
    }
    return Reflect.apply(connect, this, args)
  } as typeof connect
  refuseLookups(dns)
  refuseLookups(dns.promises)
}

function refuseLookups(module: object): void {
  for (const [name, original] of Object.entries(module)) {
    if (typeof original !== 'function' || !/^(lookup|resolve|reverse)/.test(name)) continue
    const guarded = function (this: unknown, ...args: unknown[]): unknown {
      if (runs.getStore()?.trace.isPreview === true) throw previewDial()
      return Reflect.apply(original, this, args)
    }
    Object.assign(module, { [name]: guarded })
  }
}

function previewDial(): Error {
  return Object.assign(new Error('A preview opens no connections.'), { code: PREVIEW_DIAL })
}
