// What a host prints, line by line. Secrets are removed, long lines are cut, and if there are many lines in a short time, only their number is kept.

import type { JsonObject } from '@switchyard/protocol'

/** A longer line is not kept while its end has not arrived. */
const MAX_PENDING = 64 * 1024
const MAX_LINE = 500
const MAX_LINES = 20
const PER_MS = 10_000
/** What is printed beyond this, in the same time, is dropped unread: to split it into lines would take the time of other deliveries. */
const MAX_CHARS = 2_000_000
/** Shorter values, such as "true" or "us", are no secrets, and occur in ordinary text. */
const MIN_SECRET = 6
const HIDDEN = '(hidden)'

export class HostOutput {
  readonly #settings: () => Iterable<JsonObject>
  readonly #onLine: (line: string) => void
  readonly #now: () => number
  /** The start of a line, by stream. */
  readonly #pending = new Map<string, string>()
  #sinceMs = Number.NEGATIVE_INFINITY
  #lines = 0
  #chars = 0
  /** The streams of which the start of the current line was dropped. */
  readonly #cut = new Set<string>()

  constructor(settings: () => Iterable<JsonObject>, onLine: (line: string) => void, now: () => number = () => performance.now()) {
    this.#settings = settings
    this.#onLine = onLine
    this.#now = now
  }

  add(stream: string, chunk: string): void {
    this.#renew()
    this.#chars += chunk.length
    if (this.#chars > MAX_CHARS) {
      this.#pending.delete(stream)
      this.#cut.add(stream)
      return
    }
    const lines = chunk.split('\n')
    lines[0] = (this.#pending.get(stream) ?? '') + lines[0]
    const rest = lines.pop() ?? ''
    // The end of a line may contain the end of a secret.
    if (this.#cut.has(stream) && lines.shift() === undefined) return
    this.#cut.delete(stream)
    this.#pending.set(stream, rest.slice(0, MAX_PENDING))
    for (const line of lines) if (line.trim() !== '') this.#print(line)
  }

  #renew(): void {
    if (this.#now() - this.#sinceMs <= PER_MS) return
    const [lines, chars] = [this.#lines - MAX_LINES, this.#chars - MAX_CHARS]
    if (lines > 0) this.#onLine(`(${lines} more lines)`)
    if (chars > 0) this.#onLine(`(${chars} more characters)`)
    this.#sinceMs = this.#now()
    this.#lines = 0
    this.#chars = 0
  }

  #print(line: string): void {
    if (++this.#lines > MAX_LINES) return
    // Cut after secrets were removed, so that no part of one is left at the end.
    const shown = withoutSecrets(line, this.#settings())
    this.#onLine(shown.length > MAX_LINE ? `${shown.slice(0, MAX_LINE)}…` : shown)
  }
}

/** Replaces the values of settings, also as they appear in URLs, in JSON and in base64. */
export function withoutSecrets(text: string, settings: Iterable<JsonObject>): string {
  const secrets = new Set<string>()
  for (const each of settings) collect(each, secrets)
  // The longest first: one may be a part of another.
  const sorted = [...secrets].sort((a, b) => b.length - a.length)
  return sorted.reduce((shown, secret) => shown.replaceAll(secret, HIDDEN), text)
}

function collect(value: unknown, secrets: Set<string>): void {
  if (typeof value === 'object' && value !== null) for (const each of Object.values(value)) collect(each, secrets)
  if (typeof value !== 'string') return
  // A key in PEM is printed line by line.
  for (const line of [value, ...value.split(/\r?\n/)]) {
    if (line.length < MIN_SECRET) continue
    const encoded = [
      encodeURIComponent(Buffer.from(line).toString()),
      JSON.stringify(line).slice(1, -1),
      Buffer.from(line).toString('base64').replace(/=+$/, ''),
    ]
    for (const each of [line, ...encoded]) secrets.add(each)
  }
}
