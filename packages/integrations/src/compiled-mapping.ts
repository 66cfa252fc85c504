// A mapping as functions, made once. The library checks a mapping and walks through its templates for each message, which
// takes much of the CPU time of an event (docs/decisions/0106-cost-of-an-event-of-an-integration.md). The results are those of the mapping kit with the
// bounds of bounded-mapping.ts. The kit evaluates directives that are not known here.

type Data = Readonly<Record<string, unknown>>
/** Returns a value that shares nothing with the data, without undefined properties: as the mapping kit returns it. */
type Evaluate = (data: unknown, stats?: unknown) => unknown
export type CompiledMapping = (data: object, stats?: unknown) => Record<string, unknown>

/** The parts of the mapping kit that bounded-mapping.ts has bounded. */
export interface MappingKit {
  /** Evaluates a mapping with all checks, as the kit does it. */
  transform: (mapping: object, data: object, stats?: unknown) => Record<string, unknown>
  get: (from: unknown, segments: readonly string[]) => unknown
  segmentsOf: (path: string) => string[]
  render: (template: string, data: unknown) => string
}

/** The key of a directive that is the whole mapping. */
const ROOT_DIRECTIVE = '__segment_internal_directive'

/** Marks what cannot be compiled. */
const UNKNOWN = Symbol('unknown')
type Compiled = Evaluate | typeof UNKNOWN

/** Null if the kit has to evaluate all of it. The mapping must be one that the kit accepts, and must not change. */
export function compileMapping(mapping: Data, kit: MappingKit): CompiledMapping | null {
  if (Object.keys(mapping).some((name) => name === '__proto__' || name === ROOT_DIRECTIVE || name.startsWith('@'))) return null
  const fields = Object.entries(mapping).map(([name, part]): [string, Evaluate] => {
    const compiled = compile(part, kit)
    return [name, compiled === UNKNOWN ? (data, stats) => kit.transform({ [name]: part }, data as object, stats)[name] : compiled]
  })
  return evaluateFields(fields)
}

function evaluateFields(fields: readonly (readonly [string, Evaluate])[]): CompiledMapping {
  return (data, stats) => {
    const result: Record<string, unknown> = {}
    for (const [name, evaluate] of fields) {
      const value = evaluate(data, stats)
      if (value !== undefined) result[name] = value
    }
    return result
  }
}

function compile(part: unknown, kit: MappingKit): Compiled {
  if (typeof part !== 'object' || part === null) return () => part
  if (Array.isArray(part)) return compileList(part, kit)
  const names = Object.keys(part)
  const directive = names.find((name) => name.startsWith('@'))
  if (directive !== undefined) {
    if (names.some((name) => name !== directive && name !== '_metadata')) return UNKNOWN
    const value = (part as Data)[directive]
    return Object.hasOwn(DIRECTIVES, directive) ? (DIRECTIVES[directive] as Compile)(value, kit) : UNKNOWN
  }
  return names.includes('__proto__') ? UNKNOWN : compileObject(Object.entries(part), kit)
}

function compileList(parts: readonly unknown[], kit: MappingKit): Compiled {
  const items = parts.map((each) => compile(each, kit))
  return items.includes(UNKNOWN) ? UNKNOWN : (data) => items.map((item) => (item as Evaluate)(data))
}

function compileObject(parts: readonly [string, unknown][], kit: MappingKit): Compiled {
  const fields = parts.map(([name, part]) => [name, compile(part, kit)] as const)
  return fields.some(([, evaluate]) => evaluate === UNKNOWN) ? UNKNOWN : (evaluateFields(fields as [string, Evaluate][]) as Evaluate)
}

type Compile = (value: unknown, kit: MappingKit) => Compiled

const DIRECTIVES: Readonly<Record<string, Compile>> = {
  '@path': (path, kit) => {
    if (typeof path !== 'string') return UNKNOWN
    const inner = path.replace('$.', '')
    if (inner === '' || inner === '.') return UNKNOWN
    const segments = kit.segmentsOf(inner)
    return (data) => cleaned(kit.get(data, segments))
  },
  '@template': (template, kit) => {
    if (typeof template !== 'string') return UNKNOWN
    return template.includes('{{') ? (data) => kit.render(template, data) : () => template
  },
  '@literal': compile,
  '@if': (value, kit) => {
    if (!isPlain(value) || !value['exists']) return UNKNOWN
    const exists = compile(value['exists'], kit)
    const then = compile(value['then'], kit)
    const otherwise = value['else'] ? compile(value['else'], kit) : () => undefined
    if (exists === UNKNOWN || then === UNKNOWN || otherwise === UNKNOWN) return UNKNOWN
    return (data) => ((exists(data) ?? null) === null ? otherwise(data) : then(data))
  },
  '@arrayPath': (value, kit) => {
    if (!Array.isArray(value)) return UNKNOWN
    const [path, shape] = value as unknown[]
    const list = compile(typeof path === 'string' ? { '@path': path } : path, kit)
    const item = isPlain(shape) && Object.keys(shape).length > 0 ? compile(shape, kit) : null
    if (list === UNKNOWN || item === UNKNOWN) return UNKNOWN
    return (data) => {
      const root = list(data)
      if (item === null || typeof root !== 'object' || root === null) return root
      return (Array.isArray(root) ? root : [root]).map((each) => item(each))
    }
  },
}

function isPlain(value: unknown): value is Data {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Copies what comes from a message, which is JSON. A property `__proto__` would set the prototype, as it does in the kit; it is left out. */
function cleaned(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(cleaned)
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const inner = (value as Data)[key]
    if (inner !== undefined && key !== '__proto__') copy[key] = typeof inner === 'object' ? cleaned(inner) : inner
  }
  return copy
}
