// The paths that a mapping can read, from the last messages, each with a value as an example. Pure.

export interface PathSuggestion {
  /** `$.properties.total` */
  path: string
  /** A value of the newest message that has one, shortened. */
  example: string
}

const MAX_PATHS = 300
const MAX_DEPTH = 6
const MAX_EXAMPLE = 40
/** A path has no way to write a key that contains one of these. */
const UNWRITABLE = /[.[\]'"]/

/** Fields that every event has when a mapping reads it, also if the message was sent without them. */
const ALWAYS = ['$.messageId', '$.type', '$.userId', '$.anonymousId', '$.timestamp', '$.receivedAt']

export function pathSuggestions(messages: readonly Readonly<Record<string, unknown>>[]): PathSuggestion[] {
  const examples = new Map<string, string>(ALWAYS.map((path) => [path, '']))
  const visit = (value: unknown, path: string, depth: number): void => {
    if (examples.size >= MAX_PATHS && !examples.has(path)) return
    if (path !== '$' && !examples.get(path)) examples.set(path, exampleOf(value))
    if (typeof value !== 'object' || value === null || Array.isArray(value) || depth >= MAX_DEPTH) return
    for (const [key, inner] of Object.entries(value)) if (!UNWRITABLE.test(key)) visit(inner, `${path}.${key}`, depth + 1)
  }
  for (const message of messages) visit(message, '$', 0)
  return [...examples]
    .map(([path, example]) => ({ path, example }))
    .sort((a, b) => rank(a.path) - rank(b.path) || (a.path < b.path ? -1 : 1))
}

/** What people map most often comes first. */
function rank(path: string): number {
  if (path.startsWith('$.context')) return 2
  return path.startsWith('$.properties') || path.startsWith('$.traits') ? 0 : 1
}

function exampleOf(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return text.length > MAX_EXAMPLE ? `${text.slice(0, MAX_EXAMPLE)}…` : text
}

/** The names of events, most frequent first. */
export function eventNames(messages: readonly { event: string | null }[]): string[] {
  const counts = new Map<string, number>()
  for (const { event } of messages) if (event !== null) counts.set(event, (counts.get(event) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a).map(([event]) => event)
}
