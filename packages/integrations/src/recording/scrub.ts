// Removes the secrets of a destination from everything that leaves a run: URLs, headers, bodies, answers, log lines and errors.

/** The same placeholder as in the rest of the service. */
export const HIDDEN = '(hidden)'

/** In addition to the settings that the catalogue marks as secrets: properties of objects, and settings that it does not know. */
const SECRET_NAME = /(api|access|account|auth|private|shared|signing|write)[-_ ]?key|secret|token|passw|passphrase|credential|webhook/i
/** A shorter value is no secret, and replacing it would make texts unreadable. */
const MIN_SECRET_LENGTH = 3
const MIN_NAMED_SECRET_LENGTH = 6
const MAX_PARTNERS = 20
const MAX_QUOTES = 4

export class Scrubber {
  /** Longest first, because one secret may contain another. */
  #forms: string[] = []

  /** `partners` are values that may stand beside the secret in the credentials of basic authentication. */
  add(secret: string, partners: readonly string[] = []): void {
    if (secret.length < MIN_SECRET_LENGTH) return
    const plain = [secret, ...lines(secret)]
    const pairs = ['', ...partners.slice(0, MAX_PARTNERS)].flatMap((partner) => [`${partner}:${secret}`, `${secret}:${partner}`])
    const encoded = [secret, ...pairs].map((text) => Buffer.from(text).toString('base64'))
    const all = [...plain, ...encoded].flatMap((text) => quoted(text).concat(inUrls(text)))
    this.#forms = [...new Set([...this.#forms, ...all])].sort((left, right) => right.length - left.length)
  }

  text(text: string): string {
    let result = text
    for (const form of this.#forms) if (result.includes(form)) result = result.replaceAll(form, HIDDEN)
    return result
  }
}

/** A private key is often written with other line breaks than it was stored with. */
function lines(secret: string): string[] {
  return secret.includes('\n') ? secret.split('\n').filter((line) => line.trim().length >= MIN_NAMED_SECRET_LENGTH) : []
}

/** As it appears in JSON, and in JSON within JSON: many tools include the request in their answer. Also with every letter beyond ASCII escaped. */
function quoted(text: string): string[] {
  const forms = [text]
  const ascii = JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(/[\u0080-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
  for (const start of new Set([text, ascii])) {
    for (let form = start, depth = 0; depth < MAX_QUOTES; depth++) {
      forms.push(form)
      form = JSON.stringify(form).slice(1, -1)
    }
  }
  return forms
}

function inUrls(text: string): string[] {
  const encoded = encodeURIComponent(text)
  return [encoded, encoded.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()), encoded.replaceAll('%20', '+')]
}

/** `secrets` are the names of the settings that the catalogue marks as secrets. */
export function settingsScrubber(settings: Readonly<Record<string, unknown>>, secrets: ReadonlySet<string>): Scrubber {
  const scrubber = new Scrubber()
  const texts = Object.values(settings).filter((value) => typeof value === 'string')
  const visit = (value: unknown, key: string, isMarked: boolean): void => {
    if (typeof value === 'string' || typeof value === 'number') {
      const text = String(value)
      if (isMarked || (SECRET_NAME.test(key) && text.length >= MIN_NAMED_SECRET_LENGTH)) scrubber.add(text, texts)
    } else if (value !== null && typeof value === 'object') {
      for (const [name, inner] of Object.entries(value)) visit(inner, Array.isArray(value) ? key : name, isMarked)
    }
  }
  for (const [key, value] of Object.entries(settings)) visit(value, key, secrets.has(key))
  // The URL of an endpoint is rarely marked as a secret, and some can be used by anyone who knows them.
  for (const text of texts) addMappingSecrets(scrubber, text)
  return scrubber
}

/**
 * Some tools, Slack for one, give out URLs that anyone who knows them may use, and a mapping contains them. In each URL of a
 * mapping, the values of the query and the long parts of the path are secrets; short parts are kept, because they say which endpoint was called.
 */
export function addMappingSecrets(scrubber: Scrubber, mapping: unknown): void {
  if (typeof mapping === 'string') {
    if (!/^https?:\/\//i.test(mapping) || !URL.canParse(mapping)) return
    const { pathname, searchParams, username, password } = new URL(mapping)
    for (const part of pathname.split('/')) if (/^[\w~%-]{16,}$/.test(part)) scrubber.add(part)
    for (const value of [...searchParams.values(), username, password]) if (value.length >= MIN_NAMED_SECRET_LENGTH) scrubber.add(value)
  } else if (mapping !== null && typeof mapping === 'object') {
    for (const [key, value] of Object.entries(mapping)) {
      const isNamed = isHiddenHeader(key) || SECRET_NAME.test(key)
      if (typeof value === 'string' && value.length >= MIN_NAMED_SECRET_LENGTH && isNamed) scrubber.add(value)
      addMappingSecrets(scrubber, value)
    }
  }
}

/** Hides the values of the query string, and the user name and password before an @. */
export function hiddenUrl(text: string): string {
  if (!/[?@]/.test(text)) return text
  if (!URL.canParse(text)) return HIDDEN
  const { protocol, host, pathname, search } = new URL(text)
  const names = search
    .slice(1)
    .split('&')
    .map((part) => (part.includes('=') ? `${part.slice(0, part.indexOf('='))}=${HIDDEN}` : HIDDEN))
  return `${protocol}//${host}${pathname}${search === '' ? '' : `?${names.join('&')}`}`
}

export function hiddenHeaders(headers: Readonly<Record<string, unknown>>, scrub: (text: string) => string): Record<string, string> {
  const entries = Object.entries(headers).map(([name, value]) => [name, isHiddenHeader(name) ? HIDDEN : scrub(String(value))] as const)
  return Object.fromEntries(entries)
}

function isHiddenHeader(name: string): boolean {
  return /authorization|cookie|(^|[-_])(api[-_]?key|key|token|secret|signature|password|credential)s?($|[-_])|apikey/i.test(name)
}
