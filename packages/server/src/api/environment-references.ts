// References to environment variables in a configuration file: `${NAME}`. They keep secrets out of files in git. `$${` stands for a literal
// `${`. If the variable of a reference is not set, the stored value is kept where possible.

const REFERENCE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

export type Environment = Readonly<Record<string, string | undefined>>

/** Returns the name of the variable if the text is a single reference and nothing else. */
export function onlyReference(text: unknown): string | undefined {
  return typeof text === 'string' ? /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/.exec(text)?.[1] : undefined
}

/** An empty variable counts as not set, as everywhere in the service. */
export function valueOf(name: string, env: Environment): string | undefined {
  return env[name] || undefined
}

export type Resolved = { ok: true; text: string } | { ok: false; missing: string[] }

/** If a variable is not set, the first of the `stored` values that matches the text is used instead. */
export function resolve(text: string, env: Environment, stored: readonly string[] = []): Resolved {
  const missing: string[] = []
  const resolved = text.replaceAll(REFERENCE, (whole, name?: string) => {
    if (name === undefined) return '${'
    const value = valueOf(name, env)
    if (value === undefined) missing.push(name)
    return value ?? whole
  })
  if (missing.length === 0) return { ok: true, text: resolved }
  const kept = stored.find((value) => matches(text, env, value))
  return kept === undefined ? { ok: false, missing } : { ok: true, text: kept }
}

/** Whether a value equals the text, with anything in place of the variables that are not set. */
function matches(text: string, env: Environment, value: string): boolean {
  let pattern = ''
  let last = 0
  for (const match of text.matchAll(REFERENCE)) {
    pattern += escaped(text.slice(last, match.index))
    const [whole, name] = match
    const set = name === undefined ? '${' : valueOf(name, env)
    pattern += set === undefined ? '[^]*?' : escaped(set)
    last = match.index + whole.length
  }
  return new RegExp(`^${pattern}${escaped(text.slice(last))}$`).test(value)
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}

export function escapeReferences(text: string): string {
  // A function, because `$$` in a replacement string stands for a single `$`.
  return text.replaceAll('${', () => '$${')
}

/** Generates names of environment variables, each only once. */
export class VariableNames {
  readonly #used = new Set<string>()

  /** For `Warehouse` and `shared secret`: WAREHOUSE_SHARED_SECRET. */
  name(thing: string, use: string): string {
    const word = (text: string): string =>
      text
        .normalize('NFKD')
        .replaceAll(/[^A-Za-z0-9]+/g, '_')
        .replaceAll(/^_+|_+$/g, '')
        .toUpperCase()
    const wanted = `${word(thing) || 'DESTINATION'}_${word(use) || 'VALUE'}`.replace(/^(?=\d)/, '_')
    let name = wanted
    for (let number = 2; this.#used.has(name); number += 1) name = `${wanted}_${number}`
    this.#used.add(name)
    return name
  }
}
