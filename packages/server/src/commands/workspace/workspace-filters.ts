// Converts the destination filters of a Segment workspace to conditional filters. Segment's filter language (FQL) has functions and comparisons that
// expressions here do not have; a filter that would not keep back the same messages is not converted. A value that is missing or has another type
// is where the two differ most: `!contains(null, "x")` is true at Segment, so the converted expression says so.

import { CONDITIONAL_FILTERS } from '../../destinations/settings/conditional-filter-settings.ts'
import { parseSubscribe, subscribeProblem } from '../../destinations/subscribe/parse-subscribe.ts'
import { ExpressionProblem } from '../../destinations/subscribe/tokens.ts'
import { ApiError } from '../../errors.ts'
import type { ConditionalFilter } from '../../model/configuration.ts'
import { type FqlNode, type FqlTerm, parseFql } from './fql.ts'
import type { ExportedFilter } from './workspace-export.ts'

export interface ConvertedFilters {
  filters: ConditionalFilter[]
  /** Why a filter cannot be converted, in sentences. */
  problems: string[]
}

class NotConvertible extends Error {}

export function convertFilters(exported: readonly ExportedFilter[]): ConvertedFilters {
  const converted: ConvertedFilters = { filters: [], problems: [] }
  for (const filter of exported) {
    try {
      converted.filters.push(...checked(convertFilter(filter)))
    } catch (error) {
      if (!(error instanceof NotConvertible || error instanceof ExpressionProblem)) throw error
      // A filter that is turned off keeps nothing back.
      if (filter.enabled) converted.problems.push(`Its filter ${filter.title} cannot be converted: ${error.message}.`)
    }
  }
  return converted
}

/** The service would reject the whole destination because of one filter that is not valid. */
function checked(filters: ConditionalFilter[]): ConditionalFilter[] {
  return filters.map((filter) => {
    try {
      const [valid] = CONDITIONAL_FILTERS.parse([filter], 'filters')
      return valid as ConditionalFilter
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      throw new NotConvertible(`its ${error.message.replace(/^filters\[0\]\.?/, '').replace(/\.$/, '')}`)
    }
  })
}

function convertFilter({ title, condition, enabled, actions }: ExportedFilter): ConditionalFilter[] {
  const when = expressionOf(condition)
  return actions.map(({ type, percent, path, fields }) => {
    const filter = { name: title.slice(0, 200), enabled, when, share: null, path: null, fields: null }
    switch (type) {
      case 'DROP':
        return { ...filter, action: 'drop' }
      case 'SAMPLE':
        if (percent === null || percent < 0 || percent > 1) throw new NotConvertible('its sample has no percent from 0 to 1')
        return { ...filter, action: 'sample', share: percent, path: path === null ? null : path.replace(/^\$?\./, '') || null }
      case 'DROP_PROPERTIES':
        return { ...filter, action: 'drop_properties', fields: droppedFields(fields) }
      case 'ALLOW_PROPERTIES':
        return { ...filter, action: 'allow_properties', fields: allowedFields(fields) }
      default:
        throw new NotConvertible(`its action ${type} is not known`)
    }
  })
}

/** A key with dots may be a key, or a path: both are dropped. */
function droppedFields(fields: ReadonlyMap<string, readonly string[]>): Record<string, string[]> {
  const dropped = new Map<string, string[]>()
  const add = (path: string, key: string): void => {
    const keys = dropped.get(path) ?? []
    if (!keys.includes(key)) dropped.set(path, [...keys, key])
  }
  for (const [path, keys] of someOf(fields)) {
    for (const key of keys) {
      add(path, key)
      const at = key.lastIndexOf('.')
      if (at > 0 && at < key.length - 1) add([path, key.slice(0, at)].filter((part) => part !== '').join('.'), key.slice(at + 1))
    }
  }
  return Object.fromEntries(dropped)
}

function allowedFields(fields: ReadonlyMap<string, readonly string[]>): Record<string, readonly string[]> {
  for (const [path, keys] of someOf(fields)) {
    if (path === '') throw new NotConvertible('it allows only some fields of the message itself')
    if (keys.some((key) => key.includes('.'))) throw new NotConvertible('a key that it allows contains a dot')
  }
  return Object.fromEntries(fields)
}

function someOf(fields: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, readonly string[]> {
  if (fields.size === 0) throw new NotConvertible('it has no fields')
  return fields
}

/** Null for a filter of all messages. */
export function expressionOf(condition: string): string | null {
  if (condition.trim() === 'all' || condition.trim() === '') return null
  const expression = written(parseFql(condition), false)
  const problem = subscribeProblem(expression)
  if (problem !== null) throw new NotConvertible(`its condition ${problem}`)
  parseSubscribe(expression)
  return expression
}

/** The expression for a condition or, if `isNot`, for its negation. Groups are in parentheses. */
function written(node: FqlNode, isNot: boolean): string {
  switch (node.kind) {
    case 'and':
    case 'or': {
      const word = (node.kind === 'and') === isNot ? ' or ' : ' and '
      return `(${node.parts.map((part) => written(part, isNot)).join(word)})`
    }
    case 'not':
      return written(node.part, !isNot)
    case 'in':
      return memberOf(node, isNot)
    case 'compare':
      return compared(node, isNot)
    case 'truth':
      return node.term.kind === 'call' ? called(node.term, isNot) : compared({ left: node.term, operator: '=', right: TRUE }, isNot)
  }
}

const ALWAYS_TEXT = /^(?:userId|event|name|type)$/
const TRUE: FqlTerm = { kind: 'value', value: true }
const FLIPPED: Readonly<Record<string, string>> = { '=': '=', '!=': '!=', '<': '>', '<=': '>=', '>': '<', '>=': '<=' }
const NEGATED: Readonly<Record<string, string>> = { '=': '!=', '!=': '=', '<': '>=', '<=': '>', '>': '<=', '>=': '<' }

function memberOf({ value, list }: Extract<FqlNode, { kind: 'in' }>, isNot: boolean): string {
  if (list.kind !== 'list') throw new NotConvertible('it searches a list in the message')
  if (list.values.length === 0) throw new NotConvertible('it has an empty list')
  const parts = list.values.map((each) => compared({ left: value, operator: '=', right: { kind: 'value', value: each } }, isNot))
  return `(${parts.join(isNot ? ' and ' : ' or ')})`
}

function compared(
  { left, operator, right }: Pick<Extract<FqlNode, { kind: 'compare' }>, 'left' | 'operator' | 'right'>,
  isNot: boolean,
): string {
  if (left.kind === 'value' && right.kind !== 'value')
    return compared({ left: right, operator: FLIPPED[operator] as string, right: left }, isNot)
  if (right.kind !== 'value') throw new NotConvertible('it compares two fields, or a field with a list')
  const { value } = right
  const actual = isNot ? (NEGATED[operator] as string) : operator
  if (left.kind === 'call') return comparedCall(left, actual, value)
  if (left.kind !== 'field') throw new NotConvertible('it compares two values')
  const field = left.text
  if (typeof value === 'boolean' && actual === '!=') throw new NotConvertible(`"${field} != ${value}" has no equivalent`)
  if (actual === '!=' && typeof value === 'number' && !ALWAYS_TEXT.test(field)) return unlessNumber(field, `${field} != ${literal(value)}`)
  if (actual === '=' || actual === '!=') return `${field} ${actual} ${literal(value)}`
  if (typeof value !== 'number') throw new NotConvertible(`"${actual}" compares with something that is not a number`)
  const comparison = `${field} ${actual} ${literal(value)}`
  // "not less than" holds for a missing value, which is never more.
  return isNot ? unlessNumber(field, comparison) : comparison
}

/** Comparisons with a number hold only for numbers here. Expressions cannot say that a value is a list or an object. */
function unlessNumber(field: string, comparison: string): string {
  return `(${field} = null or ${comparison} or match(${field}, "*") or ${field} = true or ${field} = false)`
}

/** `length(userId) < 1` and `typeof(…) = "null"` are common; other functions have no equivalent. */
function comparedCall({ name, args }: Extract<FqlTerm, { kind: 'call' }>, operator: string, value: unknown): string {
  const [field] = args
  if (args.length === 1 && field?.kind === 'field') {
    const { text } = field
    if (name === 'typeof' && value === 'null' && (operator === '=' || operator === '!=')) return `${text} ${operator} null`
    // A list has a length too.
    if (name === 'length' && ALWAYS_TEXT.test(text)) {
      const isEmpty = (operator === '<' && value === 1) || ((operator === '=' || operator === '<=') && value === 0)
      const hasText = (operator === '>=' && value === 1) || ((operator === '!=' || operator === '>') && value === 0)
      if (isEmpty) return `(${text} = null or ${text} = "")`
      if (hasText) return `(${text} != null and ${text} != "")`
    }
  }
  throw new NotConvertible(`the function ${name} has no equivalent here`)
}

function called({ name, args }: Extract<FqlTerm, { kind: 'call' }>, isNot: boolean): string {
  const [field, text] = args
  if ((name !== 'contains' && name !== 'match') || args.length !== 2)
    throw new NotConvertible(`the function ${name} has no equivalent here`)
  if (field?.kind !== 'field' || text?.kind !== 'value' || typeof text.value !== 'string')
    throw new NotConvertible(`the function ${name} is used with something else than a field and a text`)
  if (name === 'contains') return unlessText(field.text, `contains(${field.text}, ${literal(text.value)})`, isNot)
  return matched(field.text, text.value, isNot)
}

function matched(field: string, pattern: string, isNot: boolean): string {
  const [, start = '', fixed = '', end = ''] = /^(\**)([^*]*)(\**)$/.exec(pattern) ?? []
  if (/[?[\]\\]/.test(pattern) || (fixed === '' && pattern !== '*') || start + fixed + end !== pattern)
    throw new NotConvertible(`the pattern ${JSON.stringify(pattern)} has no equivalent: only a * at its start or end has`)
  if (pattern === '*') return isNot ? unlessText(field, `match(${field}, "*")`, true) : `${field} != null`
  if (start === '' && end === '') return `${field} ${isNot ? '!=' : '='} ${literal(fixed)}`
  if (start !== '' && end !== '') return unlessText(field, `contains(${field}, ${literal(fixed)})`, isNot)
  return unlessText(field, `match(${field}, ${literal(start === '' ? `${fixed}*` : `*${fixed}`)})`, isNot)
}

/** Both functions and their negations hold only for text here. */
function unlessText(field: string, call: string, isNot: boolean): string {
  if (!isNot) return call
  const others = ALWAYS_TEXT.test(field) ? '' : ` or ${field} < 0 or ${field} >= 0 or ${field} = true or ${field} = false`
  return `(${field} = null or !${call}${others})`
}

function literal(value: unknown): string {
  if (typeof value !== 'string') return String(value)
  if (!value.includes('"')) return `"${value}"`
  if (!value.includes("'")) return `'${value}'`
  throw new NotConvertible('a text has both kinds of quotes')
}
