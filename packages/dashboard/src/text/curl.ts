// Turns a request into a curl command that sends the same bytes. Pure. Everything is quoted for a POSIX shell: bodies and headers contain
// untrusted text, and the command is pasted into a terminal.

export interface CurlRequest {
  /** Default: POST. */
  method?: string
  url: string
  headers: Readonly<Record<string, string>>
  body: string
}

export interface Curl {
  command: string
  /** The name of the file that the body must be saved to, if it is too long for a command line. Otherwise null. */
  bodyFile: string | null
}

/** Linux limits a single argument to 128 KB. */
const MAX_ARGUMENT_BYTES = 100_000

export const BODY_FILE = 'body.json'

/** Headers that curl adds by default and the service does not send. */
const NOT_SENT = ['Accept']

export function curlOf({ method = 'POST', url, headers, body }: CurlRequest): Curl {
  const given = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
  const parts = [`curl --globoff --include --request ${method} ${quoted(url)}`]
  for (const [name, value] of Object.entries(headers)) parts.push(`--header ${quoted(value === '' ? `${name};` : `${name}: ${value}`)}`)
  for (const name of NOT_SENT) if (!given.has(name.toLowerCase())) parts.push(`--header ${quoted(`${name}:`)}`)
  const isLong = new TextEncoder().encode(body).length > MAX_ARGUMENT_BYTES
  parts.push(isLong ? `--data-binary @${BODY_FILE}` : `--data-raw ${quoted(body)}`)
  return { command: parts.join(' \\\n  '), bodyFile: isLong ? BODY_FILE : null }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** Returns which of the headers are signatures, and how each is computed. */
export function signaturesIn(headers: Readonly<Record<string, string>>): { header: string; formula: string }[] {
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
  const found: { header: string; formula: string }[] = []
  if (names.has('x-signature')) {
    found.push({
      header: 'X-Signature',
      formula: "the HMAC-SHA1 of the body (for a batch: of its first message only), with the destination's shared secret as the key",
    })
  }
  if (names.has('webhook-signature')) {
    found.push({
      header: 'webhook-signature',
      formula: "the HMAC-SHA256 of webhook-id, webhook-timestamp and the body, with the destination's signing secrets as keys",
    })
  }
  return found
}
