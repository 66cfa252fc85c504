// The platform for Node.js 18 and later. Modules that are slow to load (http, zlib) are loaded at their first use, so that
// importing the client is fast.

import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { totalmem } from 'node:os'
import { promisify } from 'node:util'
import { exitWatch, signalWatch } from './node-exit.ts'
import { httpTransport } from './node-http.ts'
import { newId } from './node-ids.ts'
import { DiskSpool } from './node-spool.ts'
import type { Platform } from './platform.ts'

export const platform: Platform = {
  newId,
  byteLength: (text) => Buffer.byteLength(text),
  encode: (text) => Buffer.from(text),
  decode: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'),
  allocate: (bytes) => Buffer.allocUnsafeSlow(bytes),
  write: (text, into, at) => (into as Buffer).write(text, at),
  base64: (bytes, alphabet) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(alphabet),
  async gzip(bytes) {
    const zlib = await import('node:zlib')
    return promisify(zlib.gzip)(bytes)
  },
  signer(pem) {
    const key = createPrivateKey(pem)
    const alg = algorithmOf(key)
    return {
      alg,
      sign: async (input) =>
        alg === 'EdDSA'
          ? sign(null, Buffer.from(input), key)
          : sign('sha256', Buffer.from(input), alg === 'ES256' ? { key, dsaEncoding: 'ieee-p1363' } : key),
    }
  },
  transport: httpTransport,
  spool: (place, report) => new DiskSpool(place, report),
  idleTimer: (run, ms) => setTimeout(run, ms).unref(),
  memoryLimitBytes() {
    const limit = process.constrainedMemory?.()
    return limit ? Math.min(limit, totalmem()) : totalmem()
  },
  warn: (text) => process.emitWarning(text, 'SwitchyardWarning'),
  watchExit: (target) => exitWatch.add(target),
  unwatchExit: (target) => exitWatch.delete(target),
  handleSignals: signalWatch,
}

function algorithmOf(key: KeyObject): string {
  switch (key.asymmetricKeyType) {
    case 'rsa':
      return 'RS256'
    case 'ed25519':
      return 'EdDSA'
    case 'ec':
      if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return 'ES256'
      throw new TypeError('an EC key must use the curve P-256')
    default:
      throw new TypeError(`a key of type ${key.asymmetricKeyType ?? 'unknown'} is not supported: use an RSA, P-256 or Ed25519 key`)
  }
}
