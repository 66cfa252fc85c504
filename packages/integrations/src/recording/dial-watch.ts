// Refuses every dial of a preview, also those of raw sockets (Kafka, SFTP), and notes for a run which connection failed: clients of such protocols report
// a failure of the network as an error of their own.

import dns from 'node:dns'
import net from 'node:net'
import { codeOf } from './open-request.ts'
import { replaceMethod } from './replace-method.ts'
import { runs } from './run-trace.ts'

const PREVIEW_DIAL = 'ERR_PREVIEW_DIAL'

export function installDialWatch(): void {
  replaceMethod(net.Socket.prototype, 'connect', function (this: net.Socket, original, ...args: unknown[]) {
    const trace = runs.getStore()?.trace
    if (trace?.isPreview === true) {
      trace.failedConnection = PREVIEW_DIAL
      process.nextTick(() => this.destroy(previewDial()))
      return this
    }
    if (trace !== undefined) {
      this.once('error', (error) => {
        trace.failedConnection = codeOf(error)
      })
    }
    return Reflect.apply(original, this, args)
  })
  refuseLookups(dns)
  refuseLookups(dns.promises)
}

function refuseLookups(module: object): void {
  for (const [name, value] of Object.entries(module)) {
    if (typeof value !== 'function' || !/^(lookup|resolve|reverse)/.test(name)) continue
    replaceMethod(module, name, function (this: unknown, original, ...args: unknown[]) {
      if (runs.getStore()?.trace.isPreview === true) throw previewDial()
      return Reflect.apply(original, this, args)
    })
  }
}

function previewDial(): Error {
  return Object.assign(new Error('A preview opens no connections.'), { code: PREVIEW_DIAL })
}
