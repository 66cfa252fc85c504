// The client on a runtime with web globals only (edge functions, workers): fetch, crypto, CompressionStream. No disk, no
// signals, no process to outlive.

import { customTransport, FetchHTTPClient } from '../send/http-client.ts'
import type { Platform } from './platform.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

// This file compiles against Node's types, which have these globals but not all of their methods' types.
const { crypto } = globalThis

export const platform: Platform = {
  newId: () => crypto.randomUUID(),
  byteLength: (text) => encoder.encode(text).length,
  encode: (text) => encoder.encode(text),
  decode: (bytes) => decoder.decode(bytes),
  concat(parts) {
    const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
    let at = 0
    for (const part of parts) {
      whole.set(part, at)
      at += part.length
    }
    return whole
  },
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
    if (body === undefined) throw new TypeError('not a PKCS#8 private key in PEM')
    const der = Uint8Array.from(atob(body.replaceAll(/\s/g, '')), (char) => char.charCodeAt(0))
    const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
    let key: ReturnType<typeof crypto.subtle.importKey> | undefined
    return {
      alg: 'RS256',
      async sign(input) {
        key ??= crypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign'])
        return new Uint8Array(await crypto.subtle.sign(algorithm, await key, encoder.encode(input)))
      },
    }
  },
  transport: () => customTransport(new FetchHTTPClient()),
  spool() {
    throw new TypeError('spool needs a disk, and this runtime has none')
  },
  idleTimer: (run, ms) => setTimeout(run, ms),
  memoryLimitBytes: () => undefined,
  warn: (text) => console.warn(text),
  keep: () => {},
  letGo: () => {},
  handleSignals() {
    throw new TypeError('handleSignals needs a process, and this runtime has none')
  },
}
