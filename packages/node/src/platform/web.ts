// The platform for runtimes that have only web APIs (edge functions, workers): fetch, crypto, CompressionStream. There is no
// file system, no signals, and no process exit to handle.

import { customTransport, FetchHTTPClient } from '../http/http-client.ts'
import type { Platform } from './platform.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const { crypto } = globalThis

/** Identified by the algorithm's object identifier near the start of a PKCS#8 key. */
const KEY_KINDS = [
  { alg: 'RS256', oid: '2a864886f70d010101', algorithm: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } },
  { alg: 'ES256', oid: '2a8648ce3d030107', algorithm: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } },
  { alg: 'EdDSA', oid: '06032b6570', algorithm: { name: 'Ed25519' } },
]

export const platform: Platform = {
  newId: () => crypto.randomUUID(),
  byteLength: (text) => encoder.encode(text).length,
  encode: (text) => encoder.encode(text),
  decode: (bytes) => decoder.decode(bytes),
  allocate: (bytes) => new Uint8Array(bytes),
  write: (text, into, at) => encoder.encodeInto(text, into.subarray(at)),
  base64(bytes, alphabet) {
    let text = ''
    for (const byte of bytes) text += String.fromCharCode(byte)
    const plain = btoa(text)
    return alphabet === 'base64' ? plain : plain.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
  },
  async gzip(bytes) {
    const stream = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new CompressionStream('gzip'))
    return new Uint8Array(await new Response(stream).arrayBuffer())
  },
  signer(pem) {
    const body = /-----BEGIN PRIVATE KEY-----([\sA-Za-z0-9+/=]+)-----END PRIVATE KEY-----/.exec(pem)?.[1]
    if (body === undefined) throw new TypeError('expected a PKCS#8 private key in PEM format')
    const der = Uint8Array.from(atob(body.replaceAll(/\s/g, '')), (char) => char.charCodeAt(0))
    const hex = Array.from(der.subarray(0, 40), (byte) => byte.toString(16).padStart(2, '0')).join('')
    const kind = KEY_KINDS.find(({ oid }) => hex.includes(oid))
    if (kind === undefined) throw new TypeError('this type of key is not supported: use an RSA, P-256 or Ed25519 key')
    let key: ReturnType<typeof crypto.subtle.importKey> | undefined
    return {
      alg: kind.alg,
      async sign(input) {
        key ??= crypto.subtle.importKey('pkcs8', der, kind.algorithm, false, ['sign'])
        return new Uint8Array(await crypto.subtle.sign(kind.algorithm, await key, encoder.encode(input)))
      },
    }
  },
  transport: () => customTransport(new FetchHTTPClient()),
  spool() {
    throw new TypeError('this runtime has no file system')
  },
  idleTimer: (run, ms) => setTimeout(run, ms),
  memoryLimitBytes: () => undefined,
  warn: (text) => console.warn(text),
  watchExit: () => {},
  unwatchExit: () => {},
  handleSignals() {
    throw new TypeError('this runtime has no process signals')
  },
}
