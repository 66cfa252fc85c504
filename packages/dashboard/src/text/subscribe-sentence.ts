// Turns a subscribe expression into a sentence, such as "When a track event named Order Completed arrives". It returns null for what it cannot describe; the
// service decides whether an expression is valid and which messages match. Pure.

type Comparison = { field: string; operator: string; value: string | null }
type Node = Comparison | { all: Node[] } | { any: Node[] }

const TOKEN = /\s*(?:"([^"]*)"|'([^']*)'|(==|!=|<=|>=|[=<>!(),])|([-+\p{L}\p{N}_.\\]+))/suy
/** More names than this are counted. */
const MAX_NAMES = 3

const OPERATORS: Readonly<Record<string, string>> = {
  '=': 'is',
  '!=': 'is not',
  '<': 'is less than',
  '<=': 'is at most',
  '>': 'is greater than',
  '>=': 'is at least',
  contains: 'contains',
  '!contains': 'does not contain',
  match: 'matches',
  '!match': 'does not match',
}

/** Null if the expression cannot be described in a sentence. */
export function subscribeSentence(expression: string): string | null {
  const node = parsed(expression)
  if (node === null) return null
  const choices = 'any' in node && nameOfAll(node, 'type') === null && nameOfAll(node, 'event') === null ? node.any : [node]
  const phrases = choices.map(phraseOf)
  return phrases.includes(null) || phrases.length > MAX_NAMES ? null : `When ${phrases.join(' or ')} arrives`
}

export interface SimpleSubscribe {
  types: string[]
  events: string[]
}

/** The types and event names of an expression that consists only of these; null if it has other conditions. */
export function simpleSubscribe(expression: string): SimpleSubscribe | null {
  const node = parsed(expression)
  if (node === null) return null
  const found: SimpleSubscribe = { types: [], events: [] }
  for (const part of 'all' in node ? node.all : [node]) {
    const types = nameOfAll(part, 'type')
    const events = nameOfAll(part, 'event')
    if (types !== null && found.types.length === 0) found.types = types
    else if (events !== null && found.events.length === 0) found.events = events
    else return null
  }
  return found
}

/** The opposite of simpleSubscribe; empty if nothing is chosen. */
export function subscribeOf({ types, events }: SimpleSubscribe): string {
  const groups = [alternatives('type', types), alternatives('event', events)].filter((group) => group.length > 0)
  return groups.map((group) => (group.length > 1 && groups.length > 1 ? `(${group.join(' or ')})` : group.join(' or '))).join(' and ')
}

/** Text in an expression has no escapes: it is quoted with the mark that it does not contain. */
function alternatives(field: string, values: readonly string[]): string[] {
  return values.map((value) => `${field} = ${value.includes('"') ? `'${value}'` : `"${value}"`}`)
}

/** `a track event named Order Completed whose properties.total is greater than 100` */
function phraseOf(node: Node): string | null {
  const parts = 'all' in node ? node.all : [node]
  const types: string[] = []
  const names: string[] = []
  const others: string[] = []
  const conditions: string[] = []
  for (const part of parts) {
    const type = nameOfAll(part, 'type')
    const name = nameOfAll(part, 'event')
    if (type !== null && types.length === 0) types.push(...type)
    else if (name !== null && names.length === 0) names.push(...name)
    else if (!('field' in part)) return null
    else if (part.field === 'event' && part.operator === '!=' && part.value !== null) others.push(part.value)
    else conditions.push(conditionText(part))
  }
  const kind = types.length === 0 ? '' : `${listed(types, types.length)} `
  return [
    `${/^[aeiou]/i.test(kind || 'event') ? 'an' : 'a'} ${kind}event`,
    ...(names.length === 0 ? [] : [`named ${listed(names)}`]),
    ...(others.length === 0 ? [] : [`other than ${listed(others)}`]),
    ...(conditions.length === 0 ? [] : [`whose ${conditions.join(' and ')}`]),
  ].join(' ')
}

function conditionText({ field, operator, value }: Comparison): string {
  if (value === null) return `${field} ${operator === '=' ? 'is not set' : operator === '!=' ? 'is set' : `${OPERATORS[operator]} null`}`
  return `${field} ${OPERATORS[operator]} ${value === '' ? 'empty text' : value}`
}

/** The values of `field = a or field = b`; null if the condition is another one. */
function nameOfAll(node: Node, field: string): string[] | null {
  const parts = 'any' in node ? node.any : [node]
  const values = parts.flatMap((part) =>
    'field' in part && part.field === field && part.operator === '=' && part.value !== null ? [part.value] : [],
  )
  return values.length === parts.length ? values : null
}

function listed(names: readonly string[], max = MAX_NAMES): string {
  const shown = names.length > max + 1 ? [...names.slice(0, max), `one of ${names.length - max} others`] : names
  return shown.length === 1 ? (shown[0] as string) : `${shown.slice(0, -1).join(', ')} or ${shown.at(-1)}`
}

type Token = { text: string; isValue: boolean }

function parsed(expression: string): Node | null {
  const tokens: Token[] = []
  const text = expression.trim()
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.length) {
    const [, double, single, symbol, word] = TOKEN.exec(text) ?? []
    const value = double ?? single
    if (value === undefined && symbol === undefined && word === undefined) return null
    tokens.push(value === undefined ? { text: symbol ?? word ?? '', isValue: false } : { text: value, isValue: true })
  }
  let at = 0
  const take = (word: string): boolean => {
    const token = tokens[at]
    if (token === undefined || token.isValue || token.text.toLowerCase() !== word) return false
    at++
    return true
  }
  const several = (word: string, one: () => Node | null, join: (parts: Node[]) => Node): Node | null => {
    const parts: Node[] = []
    do {
      const part = one()
      if (part === null) return null
      parts.push(part)
    } while (take(word))
    return parts.length === 1 ? (parts[0] as Node) : join(parts)
  }
  const any = (): Node | null => several('or', all, (parts) => ({ any: parts }))
  const all = (): Node | null => several('and', one, (parts) => ({ all: parts }))
  const value = (): string | null | undefined => {
    const token = tokens[at++]
    if (token === undefined || (!token.isValue && !/^[-+\p{L}\p{N}]/u.test(token.text))) return undefined
    return !token.isValue && token.text === 'null' ? null : token.text
  }
  const one = (): Node | null => {
    if (take('(')) {
      const inner = any()
      return take(')') ? inner : null
    }
    const not = take('!') ? '!' : ''
    for (const name of ['contains', 'match']) {
      if (!take(name)) continue
      if (!take('(')) return null
      const field = tokens[at++]
      if (field === undefined || field.isValue || !take(',')) return null
      const compared = value()
      return compared === undefined || !take(')') ? null : { field: field.text, operator: not + name, value: compared }
    }
    const field = tokens[at++]
    const operator = tokens[at++]?.text.replace('==', '=') ?? ''
    const compared = value()
    if (not !== '' || field === undefined || field.isValue || compared === undefined || !Object.hasOwn(OPERATORS, operator)) return null
    return { field: field.text, operator, value: compared }
  }
  const node = any()
  return at === tokens.length ? node : null
}
