// A tracking plan as a YAML file that can be kept in git: the fields of the API, and the names or ids of the sources. Every problem names its
// line. Writing the same plan always gives the same text, so that git shows only real changes.

import type { JsonObject, PlanRule, TrackingPlan } from '@switchyard/protocol'
import type { Node, Pair } from 'yaml'
import { array, object, optional, string } from '../api/schema.ts'
import { ApiError } from '../errors.ts'
import { byEvent, PLAN_FIELDS } from './plan-fields.ts'

/** The size of a request to the API. */
const MAX_FILE_BYTES = 1024 * 1024
/** Schemas up to this length are written on one line. */
const MAX_LINE = 90

const FILE = object({
  ...PLAN_FIELDS,
  sources: optional(array(string({ min: 1, max: 200 }), { max: 1_000, identity: (source) => source })),
})

export interface PlanFile {
  plan: TrackingPlan
  /** Names or ids; undefined if the file does not say to which sources the plan is attached. */
  sources: string[] | undefined
  /** Returns the problem with its place in the file. `field` is as in an error of the API, such as `rules[3].schema.type`. */
  problem: (field: string, message: string) => PlanFileProblem
}

/** What is wrong with a file, as `plan.yaml:12: …`. */
export class PlanFileProblem extends Error {
  override name = 'PlanFileProblem'
}

/** `path` is the name of the file, for messages. Throws a PlanFileProblem. */
export async function readPlanFile(text: string, path: string): Promise<PlanFile> {
  if (Buffer.byteLength(text) > MAX_FILE_BYTES)
    throw new PlanFileProblem(`${path}: the file is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB, the limit for a plan. Split the plan.`)
  const { LineCounter, parseDocument } = await import('yaml')
  const lines = new LineCounter()
  const at = (offset: number | undefined): string => (offset === undefined ? path : `${path}:${lines.linePos(offset).line}`)
  let value: unknown
  let contents: Node | null
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true })
    const [error] = document.errors
    if (error !== undefined) throw new PlanFileProblem(`${at(error.pos[0])}: not valid YAML: ${sentence(error.message)}`)
    contents = document.contents
    // Aliases are limited, so that a small file cannot expand to a large value.
    const expanded: unknown = document.toJS({ maxAliasCount: 100 })
    // As a request would contain it: tags can make values that JSON does not have, and an alias can refer to what contains it.
    value = JSON.parse(JSON.stringify(expanded))
  } catch (error) {
    // The parser also throws for values that are nested too deeply.
    throw error instanceof PlanFileProblem ? error : new PlanFileProblem(`${path}: cannot be read: ${sentence((error as Error).message)}`)
  }
  const problem = (field: string, message: string): PlanFileProblem => new PlanFileProblem(`${at(offsetOf(contents, field))}: ${message}`)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new PlanFileProblem(`${path}: must be a YAML mapping with the keys name and rules.`)
  try {
    const { sources, ...plan } = FILE.parse(value, '')
    return { plan, sources, problem }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw problem(error.field ?? '', error.message)
  }
}

/** Finds the start of a field in the file, or of the nearest value that contains it. A field that is only a part of a longer key is no match. */
function offsetOf(node: Node | null, field: string): number | undefined {
  const own = node?.range?.[0]
  const items = (node as { items?: (Node | Pair<Node, Node | null>)[] } | null)?.items
  if (items === undefined || field === '') return own
  const [, index, afterIndex] = /^\[(\d+)\]\.?(.*)$/s.exec(field) ?? []
  if (index !== undefined) return offsetOf((items[Number(index)] as Node | undefined) ?? null, afterIndex ?? '') ?? own
  const pairs = items.flatMap((item) => ('key' in item && startsWith(field, keyOf(item)) ? [item] : []))
  // Keys can contain dots, so the longest one counts.
  const [pair] = pairs.sort((left, right) => keyOf(right).length - keyOf(left).length)
  if (pair === undefined) return own
  const rest = field.slice(keyOf(pair).length).replace(/^\./, '')
  return rest === '' ? (pair.key.range?.[0] ?? own) : (offsetOf(pair.value, rest) ?? pair.key.range?.[0] ?? own)
}

function keyOf({ key }: { key: unknown }): string {
  return String((key as { value?: unknown } | null)?.value)
}

function startsWith(field: string, key: string): boolean {
  return field.startsWith(key) && (field.length === key.length || field[key.length] === '.' || field[key.length] === '[')
}

function sentence(message: string): string {
  const [line = ''] = message.split('\n')
  return line.endsWith('.') ? line : `${line}.`
}

const HEADER = ` A tracking plan of Switchyard. \`switchyard plan check FILE\` compares it with the messages that were sent,
 and \`switchyard plan apply FILE\` puts it into effect.`

/** The text of the file. Rules, keywords of schemas and properties are in a fixed order. */
export async function planText(plan: TrackingPlan, sources?: readonly string[]): Promise<string> {
  const { Document, isCollection, isScalar, visit } = await import('yaml')
  const { name, description, unplanned, rules } = plan
  const document = new Document({
    name,
    ...(description === undefined ? {} : { description }),
    ...(sources === undefined ? {} : { sources: [...sources].sort() }),
    unplanned,
    rules: [...rules].sort(byEvent).map(ruleFields),
  })
  document.commentBefore = HEADER
  visit(document, {
    Collection(_, node, path) {
      // The text is longer than the number of items, so most collections need not be written to know that they are too long.
      if (node.items.length === 0 || node.items.length > MAX_LINE / 2) return
      const isInSchema = path.some((above) => 'key' in above && keyOf(above) === 'schema')
      const isFlat = node.items.every((item) => {
        const value = 'value' in (item as object) && !isScalar(item) ? (item as Pair).value : item
        return !isCollection(value) || value.items.every((inner) => isScalar(inner))
      })
      if (isInSchema && isFlat && JSON.stringify(node.toJSON()).length <= MAX_LINE) node.flow = true
    },
  })
  return document.toString({ lineWidth: 0, blockQuote: 'literal' })
}

function ruleFields({ type, event, description, owner, mode, schema }: PlanRule): JsonObject {
  return {
    type,
    ...(event === undefined ? {} : { event }),
    ...(description === undefined ? {} : { description }),
    ...(owner === undefined ? {} : { owner }),
    mode,
    schema: orderedSchema(schema),
  }
}

/** Other keywords come after these, by name. */
const KEYWORDS = ['$schema', 'title', 'description', 'type', 'enum', 'const', 'format', 'items', 'properties', 'required']
/** Keywords whose value has names that the author chose. */
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'dependentSchemas', 'dependentRequired'])
/** Keywords whose value is data, not a schema. */
const DATA = new Set(['enum', 'const', 'default', 'examples', 'required', 'type'])

function orderedSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(orderedSchema)
  if (typeof schema !== 'object' || schema === null) return schema
  const rank = (keyword: string): number => KEYWORDS.indexOf(keyword) + 1 || KEYWORDS.length + 1
  const entries = Object.entries(schema).sort(([left], [right]) => rank(left) - rank(right) || (left < right ? -1 : 1))
  return Object.fromEntries(
    entries.map(([keyword, value]) => {
      if (DATA.has(keyword)) return [keyword, value]
      if (!NAMED.has(keyword) || typeof value !== 'object' || value === null) return [keyword, orderedSchema(value)]
      const named = Object.entries(value as JsonObject).sort(([left], [right]) => (left < right ? -1 : 1))
      return [keyword, Object.fromEntries(named.map(([name, inner]) => [name, orderedSchema(inner)]))]
    }),
  )
}
