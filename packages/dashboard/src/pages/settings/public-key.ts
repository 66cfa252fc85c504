// Checks a pasted public key before it is sent, so that a private key never leaves the browser. The rules are those of the service
// (oauth/keys.ts), which checks again. Parses only as much DER as needed to tell the type of a key.

export type PublicKeyCheck = { ok: true; kind: string } | { ok: false; problem: string }

const FORM = 'Paste one public key in PEM format. It starts with -----BEGIN PUBLIC KEY-----.'
const KINDS = 'Use an RSA key of 2048 to 8192 bits, an EC P-256 key or an Ed25519 key.'
const ONE_KEY = /^\s*-----BEGIN ((?:RSA )?PUBLIC KEY)-----\s([A-Za-z0-9+/=\s]+)-----END \1-----\s*$/

const OID = { rsa: '2a864886f70d010101', ec: '2a8648ce3d0201', p256: '2a8648ce3d030107', ed25519: '2b6570' } as const

export function checkPublicKey(text: string): PublicKeyCheck {
  if (/PRIVATE\s+KEY/i.test(text))
    return {
      ok: false,
      problem: 'This is a private key. It was not sent. Keep it secret and paste the public key instead: openssl pkey -in FILE -pubout',
    }
  if (/BEGIN CERTIFICATE/.test(text))
    return { ok: false, problem: 'This is a certificate. Extract its public key: openssl x509 -in FILE -pubkey -noout' }
  if (/^\s*ssh-/.test(text)) return { ok: false, problem: 'This is a key in SSH format. Convert it to PEM: ssh-keygen -f FILE -e -m PKCS8' }
  const found = ONE_KEY.exec(text)
  if (found === null)
    return {
      ok: false,
      problem:
        /-----BEGIN/.test(text) && !/-----END/.test(text) ? 'The end is missing: the last line must be -----END PUBLIC KEY-----.' : FORM,
    }
  const der = bytesOf((found[2] ?? '').replaceAll(/\s/g, ''))
  const kind = der === null ? null : found[1] === 'PUBLIC KEY' ? kindOfSpki(der) : rsaKind(der)
  if (kind === null) return { ok: false, problem: 'The text between the BEGIN and END lines is not a key. Part of it may be missing.' }
  return kind === '' ? { ok: false, problem: KINDS } : { ok: true, kind }
}

/** Null if it is not a key; empty if its type is not supported. */
function kindOfSpki(der: Uint8Array): string | null {
  const outer = element(der, 0x30)
  const algorithm = outer && element(outer.content, 0x30)
  const oid = algorithm && element(algorithm.content, 0x06)
  const key = algorithm && element(algorithm.rest, 0x03)
  if (!oid || !key) return null
  switch (hexOf(oid.content)) {
    case OID.ed25519:
      return key.content.length === 33 ? 'Ed25519' : null
    case OID.ec: {
      const curve = element(oid.rest, 0x06)
      return curve && hexOf(curve.content) === OID.p256 ? 'EC P-256' : ''
    }
    case OID.rsa:
      return rsaKind(key.content.subarray(1))
    default:
      return ''
  }
}

function rsaKind(der: Uint8Array): string | null {
  const outer = element(der, 0x30)
  const modulus = outer && element(outer.content, 0x02)
  if (!modulus) return null
  let at = 0
  while (at < modulus.content.length && modulus.content[at] === 0) at++
  const first = modulus.content[at]
  if (first === undefined) return null
  const bits = (modulus.content.length - at - 1) * 8 + (32 - Math.clz32(first))
  return bits >= 2_048 && bits <= 8_192 ? `RSA ${bits}-bit` : ''
}

/** The first element, if it has this tag and is complete; otherwise null. */
function element(bytes: Uint8Array, tag: number): { content: Uint8Array; rest: Uint8Array } | null {
  const short = bytes[1]
  if (bytes[0] !== tag || short === undefined) return null
  let length = short
  let start = 2
  if (short >= 0x80) {
    const count = short & 0x7f
    if (count === 0 || count > 3) return null
    length = 0
    for (let at = 0; at < count; at++) length = length * 256 + (bytes[2 + at] ?? 0)
    start += count
  }
  return start + length > bytes.length ? null : { content: bytes.subarray(start, start + length), rest: bytes.subarray(start + length) }
}

function bytesOf(base64: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
  } catch {
    return null
  }
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
