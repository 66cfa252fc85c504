// Finds out why a signature does not match. Tries common mistakes one by one: the one that makes the signature match is the cause. Mistakes
// that cannot be tried are listed as possible causes. Secrets and bodies never leave this page, and no message quotes a secret.

import { type PastedHeaders, parseHeaders, type SignatureHeader } from './parse-headers.ts'
import { bodyVariants, type Keys, type Mistake, STANDARD_KEYS, X_KEYS } from './variants.ts'
import * as signing from './verify-schemes.ts'

function mistake(title: string, advice: string, isProved = false): Mistake {
  return { title, advice, isProved }
}

export interface CheckInput {
  body: Uint8Array
  /** As pasted. */
  headers: string
  secret: string
  nowMs: number
}

export type Scheme = 'x-signature' | 'standard-webhooks'

export interface Checked {
  scheme: Scheme
  verdict: signing.SignatureVerdict
  mistakes: readonly Mistake[]
  /** Both signatures were sent and the given secret belongs to the other one, so this one is not reported as wrong. */
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
  const isStandard = (['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const).some(
    (name) => signing.valuesOf(values, name).length > 0,
  )
  if (signing.valuesOf(values, 'x-signature').length > 0) {
    const verdict = await signing.verifyX(values, body, secret, isStandard)
    const mistakes = verdict.code === 'valid' ? [] : await explainX(values, body, secret, verdict)
    schemes.push({ scheme: 'x-signature', verdict, mistakes, needsOtherSecret: false })
  }
  if (isStandard) {
    const key = signing.signingKey(secret)
    const verdict = await signing.verifyStandard(values, body, key === null ? [] : [key], nowMs)
    const mistakes = verdict.code === 'valid' ? [] : await explainStandard(values, body, secret, verdict)
    schemes.push({ scheme: 'standard-webhooks', verdict, mistakes, needsOtherSecret: false })
  }
  // If both signatures were sent, the secret can belong to only one of them: the one it matches, or else the one whose format it has.
  const matching = schemes.find(isMatching)?.scheme ?? (secret.trim().startsWith('whsec_') ? 'standard-webhooks' : 'x-signature')
  return {
    headers,
    schemes: schemes.map((each) => {
      const { scheme, verdict, mistakes } = each
      return { scheme, verdict, mistakes, needsOtherSecret: schemes.length > 1 && scheme !== matching && !isMatching(each) }
    }),
  }
}

/** Whether the signature is correct, or it is proved what was changed. */
function isMatching({ verdict, mistakes }: Checked): boolean {
  return (
    verdict.matches ||
    (verdict.code !== 'header_repeated' &&
      mistakes.some(({ isProved, title }) => isProved && !title.startsWith('webhook-timestamp') && !title.startsWith('The body is not')))
  )
}

// ── X-Signature ─────────────────────────────────────────────────────────────────────────────────────────────────────

async function explainX(
  values: PastedHeaders['values'],
  body: Uint8Array,
  secret: string,
  verdict: signing.SignatureVerdict,
): Promise<Mistake[]> {
  const [header = ''] = signing.valuesOf(values, 'x-signature')
  const { digest, mistakes } = readXHeader(header)
  if (verdict.code === 'header_repeated') mistakes.push(REPEATED('x-signature'))
  if (verdict.matches) return [...mistakes, ...payloadMistakes(verdict)]
  const isRight = (candidate: string | null): boolean => candidate !== null && (candidate === digest || isTruncated(digest, candidate))
  const found = await search(body, secret, X_KEYS, async (bytes, key) => {
    const candidate = await signing.xDigest(bytes, key)
    return isRight(candidate) ? truncationMistake(digest, candidate as string, 'x-signature') : null
  })
  if (found !== null) return [...proved(mistakes), ...found]
  if (signing.isBatch(body) && signing.hex(await signing.hmac('SHA-1', signing.utf8(secret), body)) === digest)
    return [
      mistake(
        'The whole batch was signed',
        'For a batch, X-Signature covers only the first message, serialized with JSON.stringify. This signature covers the whole array. Compare with the package @switchyard/webhook.',
        true,
      ),
    ]
  return [...mistakes, ...payloadMistakes(verdict), ...(verdict.code === 'signature_invalid' ? possibleCauses(body, 'x-signature') : [])]
}

/** The digest in the expected format, and what is wrong with the received format. */
function readXHeader(header: string): { digest: string; mistakes: Mistake[] } {
  const mistakes: Mistake[] = []
  const report = (title: string, advice: string): void => void mistakes.push(mistake(title, advice))
  let digest = header.trim().split(',')[0]?.trim() ?? ''
  if (/^sha\d+=/i.test(digest)) {
    report(
      'The digest has a prefix',
      'X-Signature must be 40 hex characters and nothing else. Prefixes such as sha1= are used by other services.',
    )
    digest = digest.replace(/^sha\d+=/i, '')
  }
  const bytes = /^[A-Za-z0-9+/_-]{27}=?$/.test(digest) ? signing.fromBase64(fromBase64Url(digest)) : null
  if (bytes?.length === 20) {
    report('The digest is base64, not hex', "X-Signature must be lower-case hex. Encode the digest as hex: digest('hex').")
    return { digest: signing.hex(bytes), mistakes }
  }
  if (/[A-F]/.test(digest) && /^[0-9a-f.…]+$/i.test(digest)) {
    report('The digest is in upper case', 'X-Signature must be lower-case hex. It is compared as text.')
    digest = digest.toLowerCase()
  }
  const rest = digest.replace(/(?:\.{3}|…)$/, '')
  if (/^[0-9a-f]*$/.test(rest) && rest.length < 40)
    report(
      'The header is truncated',
      `It has ${rest.length} of 40 hex characters. Logs and consoles shorten long values: copy it from the request itself.`,
    )
  else if (/^[0-9a-f]{64}$/.test(rest))
    report(
      'This is a SHA-256 digest',
      'It has 64 hex characters. X-Signature is HMAC-SHA1, which has 40. Use SHA-1, or check the webhook-signature header instead.',
    )
  else if (!/^[0-9a-f]{40}$/.test(rest)) report('This is not a digest', 'X-Signature must be 40 lower-case hex characters.')
  return { digest: rest, mistakes }
}

// ── Standard Webhooks ───────────────────────────────────────────────────────────────────────────────────────────────

async function explainStandard(
  values: PastedHeaders['values'],
  body: Uint8Array,
  secret: string,
  verdict: signing.SignatureVerdict,
): Promise<Mistake[]> {
  const mistakes: Mistake[] = []
  const report = (title: string, advice: string, isProved = false): void => void mistakes.push(mistake(title, advice, isProved))
  if (verdict.code === 'signature_missing' && verdict.header !== undefined && signing.valuesOf(values, verdict.header).length === 0) {
    report(
      `${verdict.header} is missing`,
      'The signature covers the id, the timestamp and the body, so all three headers of the same attempt are needed: webhook-id, webhook-timestamp and webhook-signature.',
    )
    return mistakes
  }
  if (verdict.code === 'header_repeated' && verdict.header !== undefined) {
    mistakes.push(REPEATED(verdict.header))
    return mistakes
  }
  const [id = ''] = signing.valuesOf(values, 'webhook-id')
  const [timestamp = ''] = signing.valuesOf(values, 'webhook-timestamp')
  const [header = ''] = signing.valuesOf(values, 'webhook-signature')
  if (verdict.header === 'webhook-id')
    report(
      'webhook-id is invalid',
      'It must have at most 256 printable characters without dots and commas. It may be truncated or have a prefix.',
    )
  const time = timestampMistake(timestamp, verdict)
  const read = readStandardHeader(header)
  if (verdict.matches) return [...mistakes, ...time, ...payloadMistakes(verdict)]
  // Tries the timestamp in seconds, so that one mistake does not hide another.
  const seconds = /^\d{13}$/.test(timestamp) ? timestamp.slice(0, 10) : timestamp
  const found = await search(body, secret, STANDARD_KEYS, async (bytes, key) => {
    const candidate = await signing.standardDigest(key, id, seconds, bytes)
    for (const digest of read.digests)
      if (digest === candidate || isTruncated(digest, candidate)) return truncationMistake(digest, candidate, 'webhook-signature')
    return null
  })
  if (found !== null) return [...proved(read.mistakes), ...found, ...time]
  if (signing.signingKey(secret) === null)
    report(
      'The secret is not a signing secret',
      `A signing secret is whsec_ followed by base64. ${secret.startsWith('whsec_') ? 'The part after whsec_ is not base64. It may be truncated.' : 'This may be the shared secret, which is used for X-Signature.'}`,
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

function timestampMistake(timestamp: string, { code, header, ageSeconds }: signing.SignatureVerdict): Mistake[] {
  if (/^\d{13}$/.test(timestamp))
    return [mistake('webhook-timestamp is in milliseconds', 'It must be in whole seconds since 1970, currently ten digits.')]
  if (code === 'header_invalid' && header === 'webhook-timestamp')
    return [mistake('webhook-timestamp is not a number of seconds', 'It must be in whole seconds since 1970, digits only.')]
  if (ageSeconds === null || Math.abs(ageSeconds) <= signing.TOLERANCE_SECONDS) return []
  return ageSeconds > 0
    ? [
        mistake(
          `webhook-timestamp is ${durationText(ageSeconds)} old`,
          `Receivers reject requests that are more than ${durationText(signing.TOLERANCE_SECONDS)} old, to prevent replay attacks. This is expected if you check an old request by hand. If your receiver rejects new requests, check its clock, and whether requests wait in a queue before they are verified.`,
          true,
        ),
      ]
    : [
        mistake(
          `webhook-timestamp is ${durationText(-ageSeconds)} in the future`,
          'The clock of this computer or of the service is wrong. Settings > About shows the server time.',
          true,
        ),
      ]
}

function readStandardHeader(header: string): { digests: string[]; mistakes: Mistake[] } {
  const mistakes: Mistake[] = []
  const report = (title: string, advice: string): void => {
    if (!mistakes.some((known) => known.title === title)) mistakes.push(mistake(title, advice))
  }
  const digests: string[] = []
  // Two joined headers have a comma and a space between their entries.
  if (/,\s+v\d/.test(header))
    report(
      'Two webhook-signature headers were joined',
      'The header is sent once, with entries separated by spaces. A proxy may have joined two headers with a comma.',
    )
  for (const entry of header.split(/,?\s+/).filter((part) => part !== '')) {
    if (/^v(?!1,)\w+,/.test(entry)) continue
    if (!entry.startsWith('v1,')) report('The version is missing', 'Each entry must be v1, a comma, and the digest in base64.')
    const text = entry.replace(/^v1[,=]/, '').replace(/(?:\.{3}|…)$/, '')
    if (/^[0-9a-f]{64}$/i.test(text)) {
      report('The digest is hex, not base64', "webhook-signature must be base64. Encode the digest as base64: digest('base64').")
      digests.push(signing.base64(Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))))
    } else if (/[-_]/.test(text)) {
      report('The digest is base64url', 'webhook-signature must be standard base64 with +, / and padding.')
      digests.push(padded(fromBase64Url(text)))
    } else if (text.length === 43) {
      report('The padding is missing', 'The digest must end with =. It may have been removed when the header was parsed.')
      digests.push(padded(text))
    } else {
      if (!/^[A-Za-z0-9+/]{43}=$/.test(text))
        report(
          /^[A-Za-z0-9+/]*$/.test(text) && text.length < 44 ? 'The header is truncated' : 'This is not a digest',
          `The digest has ${text.length} of 44 characters. Logs and consoles shorten long values: copy it from the request itself.`,
        )
      digests.push(text)
    }
  }
  return { digests, mistakes }
}

// ── Search ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The changes of body and secret that make the signature match, trying the fewest changes first. Null if none do. */
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

// ── Texts ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function isTruncated(received: string, whole: string): boolean {
  return received.length >= 6 && received.length < whole.length && whole.startsWith(received)
}

function truncationMistake(received: string, whole: string, header: SignatureHeader): Mistake[] {
  if (!isTruncated(received, whole)) return []
  return [
    mistake(
      `${header} is truncated`,
      `The first ${received.length} of ${whole.length} characters are correct; the rest is missing. Logs and consoles shorten long values: copy the full value.`,
      true,
    ),
  ]
}

/** Marks format mistakes as proved, because the digest itself is correct. Truncation is reported elsewhere, with its length. */
function proved(mistakes: readonly Mistake[]): Mistake[] {
  return mistakes.filter(({ title }) => title !== 'The header is truncated').map(({ title, advice }) => ({ title, advice, isProved: true }))
}

const REPEATED = (header: SignatureHeader): Mistake =>
  mistake(
    `${header} occurs more than once`,
    'Repeated signature headers are rejected, because an attacker could add one. A proxy may add headers, or two requests were pasted together.',
    true,
  )

function payloadMistakes({ code }: signing.SignatureVerdict): Mistake[] {
  if (code === 'invalid_json')
    return [mistake('The body is not JSON', 'The service sends JSON in UTF-8. The body may be truncated or from another request.', true)]
  if (code === 'invalid_payload')
    return [mistake('The body is not a message', 'The service sends a JSON object or a non-empty array of objects.', true)]
  if (code === 'batch_unproven')
    return [
      mistake(
        'Only the first message of the batch is verified',
        'X-Signature does not cover the other messages, so anyone who has one signed message can append others. Set a signing secret for the destination, whose signature covers the whole body, and make the receiver require it. With allowUnprovenMessages, @switchyard/webhook accepts such a batch.',
        true,
      ),
    ]
  return []
}

/** What may be wrong if no tried mistake matches, most common first. */
function possibleCauses(body: Uint8Array, scheme: Scheme): Mistake[] {
  const causes = [
    mistake(
      'Wrong secret',
      scheme === 'x-signature'
        ? 'X-Signature uses the shared secret of the destination that sent the request, not a signing secret (whsec_…) and not the secret of another destination. If the secret was changed recently, earlier requests were signed with the old one.'
        : 'webhook-signature uses a signing secret (whsec_…) of the destination that sent the request, not the shared secret and not the secret of another destination.',
    ),
    mistake(
      'Changed body',
      'Reordered keys, reformatted numbers (1.0 and 1) or another text encoding cannot be undone here. Save the raw bytes when the receiver gets them and choose them as a file, so that nothing changes them.',
    ),
    mistake(
      'Body and headers of different requests',
      'Body and headers must be from the same request. Standard Webhooks signs each attempt again, and every batch has its own signature.',
    ),
  ]
  if (signing.parsed(signing.textOf(body)) === undefined)
    causes.unshift(mistake('Incomplete body', 'The body is not valid JSON. The start or the end may be missing.'))
  return causes
}

function durationText(seconds: number): string {
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
