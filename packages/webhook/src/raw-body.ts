// The body as received, as bytes or as their exact text. Knows nothing about signatures.

const STRICT_UTF8 = { fatal: true, ignoreBOM: true }

export type RawBody = string | Uint8Array

/** Wraps an ArrayBuffer, which some platforms pass instead of a Uint8Array. */
export function asRawBody(body: unknown): unknown {
  return Object.prototype.toString.call(body) === '[object ArrayBuffer]' ? new Uint8Array(body as ArrayBuffer) : body
}

export function isRawBody(body: unknown): body is RawBody {
  return typeof body === 'string' || isBytes(body)
}

/** Works for a Uint8Array of another realm, too, for which instanceof returns false: test runners that isolate with `vm` pass those. */
export function isBytes(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === '[object Uint8Array]'
}

export function requireRawBody(body: unknown): asserts body is RawBody {
  if (!isRawBody(body)) throw new TypeError('body must be a string or a Uint8Array.')
}

/** Whether a body is a batch: its first character that is not JSON whitespace is an opening bracket. */
export function isBatch(body: RawBody): boolean {
  for (let at = 0; at < body.length; at += 1) {
    const code = typeof body === 'string' ? body.charCodeAt(at) : body[at]
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code === 0x5b
  }
  return false
}

/** Returns the body as text. Throws for bytes that are not UTF-8. Keeps a byte order mark, which makes the text invalid JSON. */
export function bodyText(body: RawBody): string {
  return typeof body === 'string' ? body : new TextDecoder('utf-8', STRICT_UTF8).decode(body)
}
