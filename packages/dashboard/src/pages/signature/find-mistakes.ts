// Why a signature does not match: the usual mistakes are tried one by one, and the one that makes the signature match is the one that was
// made. What cannot be tried is told as what to look at. Secrets and bodies never leave this page, and no sentence quotes a secret.

import { type PastedHeaders, parseHeaders, type SignatureHeader } from './parse-headers.ts'
import {
  base64,
  fromBase64,
  hex,
  hmac,
  isBatch,
  parsed,
  signingKey,
  standardDigest,
  TOLERANCE_SECONDS,
  textOf,
  utf8,
  type Verdict,
  valuesOf,
  verifyStandard,
  verifyX,
  xDigest,
} from './verify-schemes.ts'

export interface CheckInput {
  body: Uint8Array
  /** As pasted. */
  headers: string
  secret: string
  nowMs: number
}

export interface Mistake {
  /** What is different. */
  title: string
  /** Why, and what to do. */
  advice: string
  /** Whether the signature matches once it is mended: no guess then. */
  isProved: boolean
}

export type Scheme = 'x-signature' | 'standard-webhooks'

export interface Checked {
  scheme: Scheme
  verdict: Verdict
  mistakes: readonly Mistake[]
  /** Both signatures were sent, and this secret is that of the other one: so this one is not told as wrong. */
  needsOtherSecret: boolean
}

export interface CheckResult {
  headers: PastedHeaders
  schemes: readonly Checked[]
}

export async function check({ body, headers: pasted, secret, nowMs }: CheckInput): Promise<CheckResult> {
  const headers = parseHeaders(pasted)
  const { values } = headers
  const schemes: Checked[] = []
  const isStandard = (['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const).some((name) => valuesOf(values, name).length > 0)
  if (valuesOf(values, 'x-signature').length > 0) {
    const verdict = await verifyX(values, body, secret, isStandard)
    const mistakes = verdict.code === 'valid' ? [] : await explainX(values, body, secret, verdict)
    schemes.push({ scheme: 'x-signature', verdict, mistakes, needsOtherSecret: false })
  }
  if (isStandard) {
    const key = signingKey(secret)
    const verdict = await verifyStandard(values, body, key === null ? [] : [key], nowMs)
    const mistakes = verdict.code === 'valid' ? [] : await explainStandard(values, body, secret, verdict)
    schemes.push({ scheme: 'standard-webhooks', verdict, mistakes, needsOtherSecret: false })
  }
  // With both sent, one secret can be right for one of them only: the one it fits, or else the one that it has the form for.
  const fitting = schemes.find(isFitting)?.scheme ?? (secret.trim().startsWith('whsec_') ? 'standard-webhooks' : 'x-signature')
  return {
    headers,
    schemes: schemes.map((each) => {
      const { scheme, verdict, mistakes } = each
      return { scheme, verdict, mistakes, needsOtherSecret: schemes.length > 1 && scheme !== fitting && !isFitting(each) }
    }),
  }
}

/** The signature is right, or it is known what was changed. */
function isFitting({ verdict, mistakes }: Checked): boolean {
  return (
    verdict.matches ||
    (verdict.code !== 'header_repeated' &&
      mistakes.some(({ isProved, title }) => isProved && !title.startsWith('webhook-timestamp') && !title.startsWith('The body is n')))
  )
}

// ── X-Signature ─────────────────────────────────────────────────────────────────────────────────────────────────────

async function explainX(values: PastedHeaders['values'], body: Uint8Array, secret: string, verdict: Verdict): Promise<Mistake[]> {
  const [header = ''] = valuesOf(values, 'x-signature')
  const { digest, mistakes } = readXHeader(header)
  if (verdict.code === 'header_repeated') mistakes.push(REPEATED('x-signature'))
  if (verdict.matches) return [...mistakes, ...payloadMistakes(verdict)]
  const isRight = (candidate: string | null): boolean => candidate !== null && (candidate === digest || isTruncated(digest, candidate))
  const found = await search(body, secret, X_KEYS, async (bytes, key) => {
    const candidate = await xDigest(bytes, key)
    return isRight(candidate) ? truncationMistake(digest, candidate as string, 'x-signature') : null
  })
  if (found !== null) return [...proved(mistakes), ...found]
  if (isBatch(body) && hex(await hmac('SHA-1', utf8(secret), body)) === digest)
    return [
      {
        title: 'The whole batch was signed',
        advice:
          'X-Signature of a batch is made of its first message alone, written as JSON.stringify writes it. Whoever signed this took the whole array. Compare with what packages/webhook does.',
        isProved: true,
      },
    ]
  return [...mistakes, ...payloadMistakes(verdict), ...(verdict.code === 'signature_invalid' ? possibleCauses(body, 'x-signature') : [])]
}

/** The digest in the form it should have, and what is wrong with the form it has. */
function readXHeader(header: string): { digest: string; mistakes: Mistake[] } {
  const mistakes: Mistake[] = []
  const wrong = (title: string, advice: string): void => void mistakes.push({ title, advice, isProved: false })
  let digest = header.trim().split(',')[0]?.trim() ?? ''
  if (/^sha\d+=/i.test(digest)) {
    wrong(
      'There is a prefix before the digest',
      'X-Signature is 40 hex characters and nothing else. A prefix such as sha1= is another service’s.',
    )
    digest = digest.replace(/^sha\d+=/i, '')
  }
  const bytes = /^[A-Za-z0-9+/_-]{27}=?$/.test(digest) ? fromBase64(fromBase64Url(digest)) : null
  if (bytes?.length === 20) {
    wrong('The digest is base64, not hex', "X-Signature is hex in lower case. Take the digest as hex: digest('hex').")
    return { digest: hex(bytes), mistakes }
  }
  if (/[A-F]/.test(digest) && /^[0-9a-f.…]+$/i.test(digest)) {
    wrong('The digest is in upper case', 'X-Signature is hex in lower case, and it is compared as text.')
    digest = digest.toLowerCase()
  }
  const rest = digest.replace(/(?:\.{3}|…)$/, '')
  if (/^[0-9a-f]*$/.test(rest) && rest.length < 40)
    wrong(
      'The header is cut',
      `${rest.length} of 40 hex characters are there. Logs and consoles shorten long values: copy it from the request itself.`,
    )
  else if (/^[0-9a-f]{64}$/.test(rest))
    wrong(
      'This is a digest of SHA-256',
      'It has 64 hex characters; X-Signature is HMAC-SHA1, which has 40. Use sha1, or check the header webhook-signature instead.',
    )
  else if (!/^[0-9a-f]{40}$/.test(rest)) wrong('This is no digest', 'X-Signature is 40 hex characters in lower case.')
  return { digest: rest, mistakes }
}

// ── Standard Webhooks ───────────────────────────────────────────────────────────────────────────────────────────────

async function explainStandard(values: PastedHeaders['values'], body: Uint8Array, secret: string, verdict: Verdict): Promise<Mistake[]> {
  const mistakes: Mistake[] = []
  const wrong = (title: string, advice: string, isProved = false): void => void mistakes.push({ title, advice, isProved })
  if (verdict.code === 'signature_missing' && verdict.header !== undefined && valuesOf(values, verdict.header).length === 0) {
    wrong(
      `${verdict.header} is missing`,
      'The signature is made over id, time and body, so all three headers are needed: webhook-id, webhook-timestamp and webhook-signature, of the same attempt.',
    )
    return mistakes
  }
  if (verdict.code === 'header_repeated' && verdict.header !== undefined) {
    mistakes.push(REPEATED(verdict.header))
    return mistakes
  }
  const [id = ''] = valuesOf(values, 'webhook-id')
  const [timestamp = ''] = valuesOf(values, 'webhook-timestamp')
  const [header = ''] = valuesOf(values, 'webhook-signature')
  if (verdict.header === 'webhook-id')
    wrong(
      'webhook-id has a form that is not taken',
      'Up to 256 visible characters without a full stop and without a comma. Is it cut, or is there something before it?',
    )
  const time = timestampMistake(timestamp, verdict)
  const read = readStandardHeader(header)
  if (verdict.matches) return [...mistakes, ...time, ...payloadMistakes(verdict)]
  // Tried with the time in seconds, so that one mistake does not hide another.
  const seconds = /^\d{13}$/.test(timestamp) ? timestamp.slice(0, 10) : timestamp
  const found = await search(body, secret, STANDARD_KEYS, async (bytes, key) => {
    const candidate = await standardDigest(key, id, seconds, bytes)
    for (const digest of read.digests)
      if (digest === candidate || isTruncated(digest, candidate)) return truncationMistake(digest, candidate, 'webhook-signature')
    return null
  })
  if (found !== null) return [...proved(read.mistakes), ...found, ...time]
  if (signingKey(secret) === null)
    wrong(
      'The secret is not a signing secret',
      `A signing secret is whsec_ and base64. ${secret.startsWith('whsec_') ? 'What follows whsec_ is no base64: is it cut, or is a character missing?' : 'Is this the shared secret? That one makes X-Signature.'}`,
    )
  return [
    ...mistakes,
    ...read.mistakes,
    ...time,
    ...payloadMistakes(verdict),
    ...(verdict.code === 'signature_invalid' || verdict.code === 'timestamp_outside_tolerance'
      ? possibleCauses(body, 'standard-webhooks')
      : []),
  ]
}

function timestampMistake(timestamp: string, { code, header, ageSeconds }: Verdict): Mistake[] {
  if (/^\d{13}$/.test(timestamp))
    return [
      { title: 'webhook-timestamp is in milliseconds', advice: 'It is whole seconds since 1970: ten digits at present.', isProved: false },
    ]
  if (code === 'header_invalid' && header === 'webhook-timestamp')
    return [
      { title: 'webhook-timestamp is not a number of seconds', advice: 'It is whole seconds since 1970, digits alone.', isProved: false },
    ]
  if (ageSeconds === null || Math.abs(ageSeconds) <= TOLERANCE_SECONDS) return []
  return ageSeconds > 0
    ? [
        {
          title: `webhook-timestamp is ${words(ageSeconds)} old`,
          advice: `Receivers refuse what is older than ${words(TOLERANCE_SECONDS)}, so that a request that somebody recorded is not taken again. When you check an old request by hand that is expected. When your receiver says it of fresh ones, look at its clock, and whether requests wait in a queue before they are verified.`,
          isProved: true,
        },
      ]
    : [
        {
          title: `webhook-timestamp is ${words(-ageSeconds)} ahead`,
          advice: 'The clock of this computer, or that of the service, is wrong. Settings, About says how the clock of the service is.',
          isProved: true,
        },
      ]
}

function readStandardHeader(header: string): { digests: string[]; mistakes: Mistake[] } {
  const mistakes: Mistake[] = []
  const wrong = (title: string, advice: string): void => {
    if (!mistakes.some((known) => known.title === title)) mistakes.push({ title, advice, isProved: false })
  }
  const digests: string[] = []
  // Two headers joined have a comma and a blank between the entries.
  if (/,\s+v\d/.test(header))
    wrong(
      'Two webhook-signature headers were joined',
      'The header comes once, with its entries apart by a blank. A proxy that joins headers with commas makes it unreadable.',
    )
  for (const entry of header.split(/,?\s+/).filter((part) => part !== '')) {
    if (/^v(?!1,)\w+,/.test(entry)) continue
    if (!entry.startsWith('v1,')) wrong('The version is missing', 'Each entry is v1, a comma, and the digest in base64.')
    const text = entry.replace(/^v1[,=]/, '').replace(/(?:\.{3}|…)$/, '')
    if (/^[0-9a-f]{64}$/i.test(text)) {
      wrong('The digest is hex, not base64', "webhook-signature is base64. Take the digest as base64: digest('base64').")
      digests.push(base64(Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))))
    } else if (/[-_]/.test(text)) {
      wrong('The digest is base64url', 'webhook-signature is plain base64, with + and / and padding.')
      digests.push(padded(fromBase64Url(text)))
    } else if (text.length === 43) {
      wrong('The padding is missing', 'The digest ends with =. Something cut it off, or read the header as a query.')
      digests.push(padded(text))
    } else {
      if (!/^[A-Za-z0-9+/]{43}=$/.test(text))
        wrong(
          /^[A-Za-z0-9+/]*$/.test(text) && text.length < 44 ? 'The header is cut' : 'This is no digest',
          `Of the digest ${text.length} characters are there, and it has 44. Logs and consoles shorten long values: copy it from the request itself.`,
        )
      digests.push(text)
    }
  }
  return { digests, mistakes }
}

// ── What is tried ───────────────────────────────────────────────────────────────────────────────────────────────────

interface Variant<T> {
  value: T
  /** Null: as it was given. */
  mistake: Omit<Mistake, 'isProved'> | null
}

type Keys = (secret: string) => Variant<Uint8Array>[]

const X_KEYS: Keys = (secret) => [
  { value: utf8(secret), mistake: null },
  ...secretVariants(secret).map(({ value, mistake }) => ({ value: utf8(value), mistake })),
  ...withKey(signingKey(secret), {
    title: 'The secret was decoded before it was used',
    advice: 'X-Signature is made with the shared secret as it stands, as UTF-8 text. Whoever signed this decoded it from base64 first.',
  }),
]

const STANDARD_KEYS: Keys = (secret) => [
  ...withKey(signingKey(secret), null),
  ...secretVariants(secret).flatMap(({ value, mistake }) => withKey(signingKey(value), mistake)),
  ...[secret, secret.replace(/^whsec_/, '')].map((text) => ({
    value: utf8(text),
    mistake: {
      title: 'The secret was used as text',
      advice: 'The key is what follows whsec_, decoded from base64. Whoever signed this took the text itself.',
    },
  })),
]

function withKey(key: Uint8Array | null, mistake: Variant<Uint8Array>['mistake']): Variant<Uint8Array>[] {
  return key === null || key.length === 0 ? [] : [{ value: key, mistake }]
}

/** What comes along when a secret is copied. */
function secretVariants(secret: string): Variant<string>[] {
  const variants: Variant<string>[] = []
  const add = (value: string, title: string, advice: string): void => {
    if (value !== '' && value !== secret && !variants.some((known) => known.value === value))
      variants.push({ value, mistake: { title, advice } })
  }
  add(
    secret.trim(),
    'There are blanks around the secret',
    'A blank or a line break came along when it was copied, or stands in the environment variable or file that it is read from. Trim it.',
  )
  add(
    secret.trim().replace(/^(['"`])(.*)\1$/, '$2'),
    'There are quotes around the secret',
    'They belong to the file that it was copied from, not to the secret.',
  )
  add(
    secret.trim().replace(/^[A-Za-z_][A-Za-z0-9_]*=/, ''),
    'The name of a variable stands before the secret',
    'Only what follows the = is the secret.',
  )
  add(
    `${secret}\n`,
    'The secret was used with a line break at its end',
    'Whoever signed this read it from a file and kept the line break. Trim it there.',
  )
  return variants
}

/** What happens to a body between the network and whoever verifies it. */
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
    'There is a line break at the end of the body',
    'Editors, echo and some loggers add one. The signature is of the bytes without it: use printf or --data-binary instead of echo.',
  )
  add(text.replace(/^\uFEFF/, ''), 'There is a byte order mark before the body', 'An editor wrote it. Save as UTF-8 without it.')
  add(text.trim(), 'There is white space around the body', 'The signature is of the bytes as they were sent.')
  const written = parsed(text)
  if (written !== undefined && typeof written === 'object')
    add(
      JSON.stringify(written),
      'The body was parsed and written anew',
      'Blanks, line breaks or escapes are not as they were sent: it was formatted to be read, or written by another JSON library. Verify the bytes as received, before any parser: express.raw() in Express, request.get_data() in Flask, request.body in Django.',
    )
  if (typeof written === 'string')
    add(written, 'The body is JSON within a JSON string', 'It was stringified twice. Verify the inner text, which is what was sent.')
  if (/^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(text)) {
    const bytes = fromBase64(text.replaceAll(/\s/g, ''))
    add(bytes, 'The body is base64', 'Some gateways hand bodies over so (isBase64Encoded). Decode it before it is verified.')
  }
  add(text.replaceAll(/\r\n/g, '\n'), 'The line breaks are CR LF', 'They were LF when it was signed.')
  add(
    text.replaceAll(/\r?\n/g, '\r\n'),
    'The line breaks are LF',
    'They were CR LF when it was signed; a text field of a browser changes them. Choose a file instead of pasting.',
  )
  add(`${text}\n`, 'A line break at the end of the body is missing', 'It was there when the body was signed.')
  return variants
}

/** The first change of body or secret that makes it match: the fewer changes the better. Null when none does. */
async function search(
  body: Uint8Array,
  secret: string,
  keys: Keys,
  matches: (body: Uint8Array, key: Uint8Array) => Promise<Mistake[] | null>,
): Promise<Mistake[] | null> {
  const tries = bodyVariants(body).flatMap((ofBody) => keys(secret).map((ofKey) => ({ ofBody, ofKey })))
  const changes = ({ ofBody, ofKey }: (typeof tries)[number]): number => Number(ofBody.mistake !== null) + Number(ofKey.mistake !== null)
  for (const { ofBody, ofKey } of tries.sort((left, right) => changes(left) - changes(right))) {
    const also = await matches(ofBody.value, ofKey.value)
    if (also === null) continue
    return [...[ofBody.mistake, ofKey.mistake].flatMap((mistake) => (mistake === null ? [] : [{ ...mistake, isProved: true }])), ...also]
  }
  return null
}

// ── Words ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function isTruncated(received: string, whole: string): boolean {
  return received.length >= 6 && received.length < whole.length && whole.startsWith(received)
}

function truncationMistake(received: string, whole: string, header: SignatureHeader): Mistake[] {
  if (!isTruncated(received, whole)) return []
  return [
    {
      title: `${header} is cut`,
      advice: `The first ${received.length} of ${whole.length} characters are right, and the rest is missing. Copy the whole value: logs and consoles shorten long ones.`,
      isProved: true,
    },
  ]
}

/** The form is the mistake, since the digest itself is right. The cut is told with its length elsewhere. */
function proved(mistakes: readonly Mistake[]): Mistake[] {
  return mistakes.filter(({ title }) => title !== 'The header is cut').map(({ title, advice }) => ({ title, advice, isProved: true }))
}

const REPEATED = (header: SignatureHeader): Mistake => ({
  title: `${header} is there more than once`,
  advice:
    'Which of them would count is what a forger would like to choose, so none does. Does a proxy add headers of its own, or were two requests pasted together?',
  isProved: true,
})

function payloadMistakes({ code }: Verdict): Mistake[] {
  if (code === 'invalid_json')
    return [
      {
        title: 'The body is not JSON',
        advice: 'The service sends JSON in UTF-8. Is the body cut, or is it from another request?',
        isProved: true,
      },
    ]
  if (code === 'invalid_payload')
    return [
      {
        title: 'The body is no message',
        advice: 'The service sends a JSON object, or an array of them that is not empty.',
        isProved: true,
      },
    ]
  if (code === 'batch_unproven')
    return [
      {
        title: 'Only the first message of the batch is proven',
        advice:
          'X-Signature does not cover the other messages: anybody who has seen one signed message can append others. Give the destination a signing secret, whose signature covers the whole body, and make the receiver require it. With allowUnprovenMessages, @switchyard/webhook accepts such a batch.',
        isProved: true,
      },
    ]
  return []
}

/** Nothing that was tried helps: what is left, the most usual first. */
function possibleCauses(body: Uint8Array, scheme: Scheme): Mistake[] {
  const guesses: Omit<Mistake, 'isProved'>[] = [
    {
      title: 'Another secret',
      advice:
        scheme === 'x-signature'
          ? 'X-Signature is made with the shared secret of the destination that sent it, not with a signing secret (whsec_…), and not with that of another destination. When it was changed lately, what was sent before has the old one.'
          : 'It is made with a signing secret (whsec_…) of the destination that sent it, not with the shared secret, and not with that of another destination.',
    },
    {
      title: 'A body that was changed',
      advice:
        'Keys in another order, numbers written otherwise (1.0 and 1), or text in another encoding cannot be put back here. Keep the raw bytes where they come in and check those; choose them as a file, so that nothing is changed on the way.',
    },
    {
      title: 'Another request',
      advice:
        'Body and headers must be of the same request. Each attempt is signed anew by Standard Webhooks, and every batch has a signature of its own.',
    },
  ]
  if (parsed(textOf(body)) === undefined)
    guesses.unshift({ title: 'The body is not whole', advice: 'It is not JSON as it stands. Is the start or the end missing?' })
  return guesses.map(({ title, advice }) => ({ title, advice, isProved: false }))
}

function words(seconds: number): string {
  if (seconds < 120) return `${seconds} seconds`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} minutes`
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} hours`
  return `${Math.round(seconds / 86_400)} days`
}

function fromBase64Url(text: string): string {
  return text.replaceAll('-', '+').replaceAll('_', '/')
}

function padded(text: string): string {
  return text.replace(/=*$/, '').padEnd(Math.ceil(text.replace(/=*$/, '').length / 4) * 4, '=')
}

function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, at) => byte === right[at])
}
