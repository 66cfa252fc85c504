// References to the environment in a configuration file: `${NAME}`. A file in git never holds a secret; it says where the
// secret is. `$${` stands for `${` itself. A reference whose variable is not set leaves alone what is stored, where it can.

const REFERENCE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

export type Environment = Readonly<Record<string, string | undefined>>

/** The one variable that the text is, if it is nothing else. */
export function onlyReference(text: unknown): string | undefined {
  return typeof text === 'string' ? /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/.exec(text)?.[1] : undefined
}

/** A variable that is empty is one that is not set, as everywhere. */
export function valueOf(name: string, env: Environment): string | undefined {
  return env[name] || undefined
}

export type Resolved = { ok: true; text: string } | { ok: false; missing: string[] }

/** `stored` are values one of which may be what the text meant when it was written: used where a variable is not set. */
export function resolve(text: string, env: Environment, stored: readonly string[] = []): Resolved {
  const missing: string[] = []
  const resolved = text.replaceAll(REFERENCE, (whole, name?: string) => {
    if (name === undefined) return '${'
    const value = valueOf(name, env)
    if (value === undefined) missing.push(name)
    return value ?? whole
  })
  if (missing.length === 0) return { ok: true, text: resolved }
  const kept = stored.find((value) => fits(text, env, value))
  return kept === undefined ? { ok: false, missing } : { ok: true, text: kept }
}

/** Whether a value is the text with something in the place of the variables that are not set. */
function fits(text: string, env: Environment, value: string): boolean {
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
  // A function, because in a replacement text $$ is one $.
  return text.replaceAll('${', () => '$${')
}

/** Names of variables, none given out twice. */
export class VariableNames {
  readonly #taken = new Set<string>()

  /** WAREHOUSE_SHARED_SECRET of `Warehouse` and `SHARED_SECRET`. */
  name(thing: string, use: string): string {
    const word = (text: string): string =>
      text
        .normalize('NFKD')
        .replaceAll(/[^A-Za-z0-9]+/g, '_')
        .replaceAll(/^_+|_+$/g, '')
        .toUpperCase()
    const wanted = `${word(thing) || 'DESTINATION'}_${word(use) || 'VALUE'}`.replace(/^(?=\d)/, '_')
    let name = wanted
    for (let number = 2; this.#taken.has(name); number += 1) name = `${wanted}_${number}`
    this.#taken.add(name)
    return name
  }
}
