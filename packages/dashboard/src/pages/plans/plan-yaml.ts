// A tracking plan as text in the editor, in the format of its file: YAML, of which JSON is a part. Loaded only with the editor, because the
// YAML library is large; no other file of the dashboard may import it.

import { Document, isCollection, isMap, isPair, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from 'yaml'
import type { CodeProblem } from '../../text/code-problems.ts'

/** What the file contains beside the fields of the API, which the API checks. */
export interface PlanContent {
  name?: unknown
  description?: unknown
  unplanned?: unknown
  rules?: unknown
}

export interface ReadPlan {
  /** Null if the text cannot be read. */
  plan: PlanContent | null
  /** Names or ids of sources; undefined if the text does not name them. */
  sources: string[] | undefined
  problems: CodeProblem[]
  /** Returns the problem at the place of a field that the API names, such as `rules[3].schema.type`. */
  problemAt: (field: string | null, message: string) => CodeProblem
}

const MAX_ALIASES = 100
/** Values in schemas up to this length are written on one line. */
const MAX_LINE = 90

export function readPlan(text: string): ReadPlan {
  const lines = new LineCounter()
  const at = (offset: number | undefined, message: string): CodeProblem => {
    const { line, col } = lines.linePos(offset ?? 0)
    return { line: Math.max(1, line), column: Math.max(1, col), message }
  }
  const unreadable = (problem: CodeProblem): ReadPlan => ({
    plan: null,
    sources: undefined,
    problems: [problem],
    problemAt: (_, message) => ({ line: 1, column: null, message }),
  })
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
    const [error] = document.errors
    if (error !== undefined) return unreadable(at(error.pos[0], `Not valid YAML: ${error.message.split('\n')[0]}`))
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES })
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return unreadable(at(0, 'Enter a plan: a mapping with at least the keys name and rules.'))
    const { sources, ...plan } = value as { sources?: unknown } & PlanContent
    const problemAt = (field: string | null, message: string): CodeProblem => at(offsetOf(document.contents, field ?? ''), message)
    if (sources !== undefined && !(Array.isArray(sources) && sources.every((source) => typeof source === 'string')))
      return { plan, sources: undefined, problems: [problemAt('sources', 'Must be a list of names or ids of sources.')], problemAt }
    return { plan, sources, problems: [], problemAt }
  } catch (error) {
    // The library also throws for values that are nested too deeply, and for too many aliases.
    return unreadable({ line: 1, column: null, message: `Cannot be read: ${(error as Error).message.split('\n')[0]}` })
  }
}

/** The start of a field, or of the nearest value that contains it. */
function offsetOf(contents: Node | null, field: string): number | undefined {
  let node: unknown = contents
  let offset = contents?.range?.[0]
  for (const part of field.match(/[^.[\]]+/g) ?? []) {
    const item = isSeq(node)
      ? node.items[Number(part)]
      : isMap(node)
        ? node.items.find(({ key }) => isScalar(key) && String(key.value) === part)
        : undefined
    if (item === undefined) break
    const start = (isPair(item) ? item.key : item) as Node | null
    offset = start?.range?.[0] ?? offset
    node = isPair(item) ? item.value : item
  }
  return offset
}

export interface WrittenPlan {
  name: string
  description?: string | null | undefined
  unplanned: string
  rules: readonly object[]
}

/** `sources` are names. */
export function planYaml({ name, description, unplanned, rules }: WrittenPlan, sources: readonly string[]): string {
  const document = new Document({ name, ...(description ? { description } : {}), sources, unplanned, rules: rules.map(writtenRule) })
  visit(document, {
    Collection(_, node, path) {
      const isInSchema = path.some((above) => isPair(above) && isScalar(above.key) && above.key.value === 'schema')
      const isFlat = node.items.every((item) => !isCollection(isPair(item) ? item.value : item))
      if (isInSchema && isFlat && node.items.length > 0 && JSON.stringify(node.toJSON()).length <= MAX_LINE) node.flow = true
    },
  })
  return document.toString({ lineWidth: 0, blockQuote: 'literal' })
}

/** Without the fields that are not set. */
function writtenRule(rule: object): object {
  return Object.fromEntries(Object.entries(rule).filter(([, value]) => value !== null && value !== undefined))
}
