// The variants of a body and of a secret that are tried when a signature does not match: each undoes one common mistake. Pure.

import { fromBase64, parsed, signingKey, textOf, utf8 } from './verify-schemes.ts'

export interface Mistake {
  /** What is wrong. */
  title: string
  /** Why, and what to do. */
  advice: string
  /** Whether the signature matches once the mistake is corrected, so that this is not a guess. */
  isProved: boolean
}

export interface Variant<T> {
  value: T
  /** Null for the original value. */
  mistake: Omit<Mistake, 'isProved'> | null
}

export type Keys = (secret: string) => Variant<Uint8Array>[]

export const X_KEYS: Keys = (secret) => [
  { value: utf8(secret), mistake: null },
  ...secretVariants(secret).map(({ value, mistake }) => ({ value: utf8(value), mistake })),
  ...withKey(signingKey(secret), {
    title: 'The secret was decoded before it was used',
    advice: 'X-Signature uses the shared secret as UTF-8 text. The signer decoded it from base64 first.',
  }),
]

export const STANDARD_KEYS: Keys = (secret) => [
  ...withKey(signingKey(secret), null),
  ...secretVariants(secret).flatMap(({ value, mistake }) => withKey(signingKey(value), mistake)),
  ...[secret, secret.replace(/^whsec_/, '')].map((text) => ({
    value: utf8(text),
    mistake: {
      title: 'The secret was used as text',
      advice: 'The key is the part after whsec_, decoded from base64. The signer used the text itself.',
    },
  })),
]

function withKey(key: Uint8Array | null, mistake: Variant<Uint8Array>['mistake']): Variant<Uint8Array>[] {
  return key === null || key.length === 0 ? [] : [{ value: key, mistake }]
}

/** The secret without what is often copied along with it. */
function secretVariants(secret: string): Variant<string>[] {
  const variants: Variant<string>[] = []
  const add = (value: string, title: string, advice: string): void => {
    if (value !== '' && value !== secret && !variants.some((known) => known.value === value))
      variants.push({ value, mistake: { title, advice } })
  }
  add(
    secret.trim(),
    'The secret has white space around it',
    'A space or line break was copied with it, or is in the environment variable or file that it is read from. Trim the secret.',
  )
  add(
    secret.trim().replace(/^(['"`])(.*)\1$/, '$2'),
    'The secret has quotes around it',
    'The quotes belong to the file that it was copied from, not to the secret.',
  )
  add(
    secret.trim().replace(/^[A-Za-z_][A-Za-z0-9_]*=/, ''),
    'The secret starts with a variable name',
    'The secret is only the part after the = sign.',
  )
  add(
    `${secret}\n`,
    'The secret was used with a line break at the end',
    'The signer read it from a file and kept the line break. Trim it there.',
  )
  return variants
}

/** The body with common changes between the network and the verification undone. */
export function bodyVariants(body: Uint8Array): Variant<Uint8Array>[] {
  const variants: Variant<Uint8Array>[] = [{ value: body, mistake: null }]
  const text = textOf(body)
  if (text === null) return variants
  const add = (value: string | Uint8Array | null, title: string, advice: string): void => {
    if (value === null) return
    const bytes = typeof value === 'string' ? utf8(value) : value
    if (!variants.some((known) => sameBytes(known.value, bytes))) variants.push({ value: bytes, mistake: { title, advice } })
  }
  add(
    text.replace(/\r?\n$/, ''),
    'The body has a line break at the end',
    'Editors, echo and some loggers add one. The signature covers the body without it. Use printf or --data-binary instead of echo.',
  )
  add(
    text.replace(/^\uFEFF/, ''),
    'The body starts with a byte order mark',
    'An editor added it. Save the body as UTF-8 without a byte order mark.',
  )
  add(text.trim(), 'The body has white space around it', 'The signature covers the exact bytes that were sent.')
  const written = parsed(text)
  if (written !== undefined && typeof written === 'object')
    add(
      JSON.stringify(written),
      'The body was parsed and serialized again',
      'White space, line breaks or escapes differ from what was sent: the body was pretty-printed or serialized by another JSON library. Verify the raw bytes before parsing: express.raw() in Express, request.get_data() in Flask, request.body in Django.',
    )
  if (typeof written === 'string')
    add(written, 'The body is JSON within a JSON string', 'It was serialized twice. Verify the inner text, which is what was sent.')
  if (/^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(text)) {
    const bytes = fromBase64(text.replaceAll(/\s/g, ''))
    add(bytes, 'The body is base64', 'Some gateways pass bodies as base64 (isBase64Encoded). Decode the body before verifying it.')
  }
  add(text.replaceAll(/\r\n/g, '\n'), 'The line breaks are CR LF', 'They were LF when the body was signed.')
  add(
    text.replaceAll(/\r?\n/g, '\r\n'),
    'The line breaks are LF',
    'They were CR LF when the body was signed. Text fields in browsers change them: choose a file instead of pasting.',
  )
  add(`${text}\n`, 'A line break at the end of the body is missing', 'It was there when the body was signed.')
  return variants
}

function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, at) => byte === right[at])
}
