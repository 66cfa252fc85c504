// What is known about the values of one property, from the messages that were read: types, formats, small sets of strings, elements and nested
// properties. `schema` describes them as JSON Schema, so that every value that was added is valid. Memory is bounded, whatever was sent: see Budget.

import { type JsonObject, parseTime } from '@switchyard/protocol'
import { isPersonalProperty, isPlainName, isPlainValue } from './personal-data.ts'

const MAX_DEPTH = 8
const MAX_PROPERTIES = 200
const MAX_ENUM = 12
/** How often each value of an enum was seen at least. */
const MIN_REPEATS = 3
/** How many senders sent each value of an enum at least, if there are that many: what only one person sends may be about this person. */
const MIN_SENDERS = 3
const MAX_FORMAT_LENGTH = 2_048

/** How many more properties can be added in all. */
export interface Budget {
  left: number
}

/** Each accepts fewer texts than the format of JSON Schema, and none that the format does not have. */
const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  'date-time': (text) =>
    /^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/.test(text) && parseTime(text) !== undefined,
  email: (text) => text.length <= 254 && /^[\w%+-]+(\.[\w%+-]+)*@([a-z\d]([a-z\d-]*[a-z\d])?\.)+[a-z]{2,}$/i.test(text),
  uri: (text) => /^https?:\/\/[a-z\d]([a-z\d.-]*[a-z\d])?(:\d{1,5})?([/?]([\w.~!$&'()*+,;=:@/?-]|%[\da-f]{2})*)?(#[\w.-]*)?$/i.test(text),
  uuid: (text) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text),
}

type JsonType = 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array' | 'null'
const TYPES: readonly JsonType[] = ['string', 'integer', 'number', 'boolean', 'object', 'array', 'null']

export class ObservedValues {
  count = 0
  /** A bit for each of TYPES: a set for each of many properties would cost more. */
  #types = 0
  readonly #depth: number
  readonly #budget: Budget
  readonly #name: string
  #strings: ObservedStrings | undefined
  #items: ObservedValues | undefined
  #properties: ObservedProperties | undefined

  /** `name` is the name of the property. */
  constructor(name: string, budget: Budget, depth = 0) {
    this.#name = name
    this.#budget = budget
    this.#depth = depth
    budget.left--
  }

  /** `sender` identifies the user who sent the value. */
  add(value: unknown, sender: string): void {
    this.count++
    const type = typeOf(value)
    this.#types |= 1 << TYPES.indexOf(type)
    if (type === 'string') {
      this.#strings ??= new ObservedStrings(this.#name)
      this.#strings.add(value as string, sender)
    } else if ((type === 'array' || type === 'object') && this.#depth < MAX_DEPTH && this.#hasRoom()) {
      if (type === 'object') {
        this.#properties ??= new ObservedProperties(this.#budget, this.#depth + 1)
        this.#properties.add(value as JsonObject, sender)
      } else {
        this.#items ??= new ObservedValues(this.#name, this.#budget, this.#depth + 1)
        for (const item of value as unknown[]) this.#items.add(item, sender)
      }
    }
  }

  /** Values that came after the budget was spent must be valid too, so whatever could not be followed from the start is not described. */
  #hasRoom(): boolean {
    return this.#properties !== undefined || this.#items !== undefined || this.#budget.left > 0
  }

  /** Describes at most so many levels of nested values. */
  schema(levels = MAX_DEPTH): JsonObject {
    const seen = TYPES.filter((_, index) => (this.#types >> index) & 1)
    const types = seen.includes('number') ? seen.filter((type) => type !== 'integer') : seen
    // Null alone says nothing about the values that may come.
    if (types.length === 0 || (types.length === 1 && types[0] === 'null')) return {}
    const type = { type: types.length === 1 ? types[0] : types, ...this.#strings?.keywords(types) }
    if (levels === 0) return type
    return {
      ...type,
      ...(this.#items === undefined || this.#items.count === 0 ? {} : withoutEmpty('items', this.#items.schema(levels - 1))),
      ...this.#properties?.keywords(levels - 1),
    }
  }
}

class ObservedProperties {
  #count = 0
  readonly #budget: Budget
  readonly #depth: number
  readonly #known = new Map<string, ObservedValues>()
  /** The values of properties whose names cannot stand in a plan, together. */
  #others: ObservedValues | undefined
  /** Whether there were properties that could not be followed. */
  #isOpen = false

  constructor(budget: Budget, depth: number) {
    this.#budget = budget
    this.#depth = depth
  }

  add(object: JsonObject, sender: string): void {
    this.#count++
    for (const name of Object.keys(object)) this.#valuesOf(name)?.add(object[name], sender)
  }

  #valuesOf(name: string): ObservedValues | undefined {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const isSpent = this.#budget.left <= 0
    if (isPlainName(name) && this.#known.size < MAX_PROPERTIES && !isSpent) {
      const values = new ObservedValues(name, this.#budget, this.#depth)
      this.#known.set(name, values)
      return values
    }
    if (isSpent) this.#isOpen = true
    // Their values are about whatever their names identify.
    else this.#others ??= new ObservedValues('id', this.#budget, this.#depth)
    return this.#others
  }

  keywords(levels: number): JsonObject {
    const sorted = [...this.#known].sort(([left], [right]) => (left < right ? -1 : 1))
    const required = sorted.filter(([, { count }]) => count === this.#count).map(([name]) => name)
    return {
      ...(sorted.length === 0 ? {} : { properties: Object.fromEntries(sorted.map(([name, values]) => [name, values.schema(levels)])) }),
      ...(required.length === 0 ? {} : { required }),
      ...(this.#isOpen ? {} : { additionalProperties: this.#others?.schema(levels) ?? false }),
    }
  }
}

class ObservedStrings {
  #formats = Object.keys(FORMATS)
  /** How often each text was seen, and by whom it was sent; null once the texts cannot be an enum. */
  #values: Map<string, { count: number; senders: Set<string> }> | null
  readonly #senders = new Set<string>()

  constructor(name: string) {
    this.#values = isPersonalProperty(name) ? null : new Map()
  }

  add(text: string, sender: string): void {
    if (this.#formats.length > 0)
      this.#formats = text.length > MAX_FORMAT_LENGTH ? [] : this.#formats.filter((format) => FORMATS[format]?.(text))
    if (this.#values === null) return
    addSome(this.#senders, sender)
    const known = this.#values.get(text)
    if (known !== undefined) {
      known.count++
      addSome(known.senders, sender)
    } else if (this.#values.size < MAX_ENUM && isPlainValue(text)) this.#values.set(text, { count: 1, senders: new Set([sender]) })
    else this.#values = null
  }

  keywords(types: readonly JsonType[]): JsonObject {
    const [format] = this.#formats
    if (format !== undefined) return { format }
    const values = [...(this.#values ?? [])]
    const isSmallSet =
      // One value alone does not show that there is a choice.
      values.length > 1 && values.every(([, { count, senders }]) => count >= MIN_REPEATS && senders.size >= this.#senders.size)
    if (!isSmallSet || types.some((type) => type !== 'string' && type !== 'null')) return {}
    return { enum: [...values.map(([text]) => text).sort(), ...(types.includes('null') ? [null] : [])] }
  }
}

/** As many as are needed to compare with MIN_SENDERS. */
function addSome(senders: Set<string>, sender: string): void {
  if (senders.size < MIN_SENDERS) senders.add(sender)
}

function withoutEmpty(keyword: string, schema: JsonObject): JsonObject {
  return Object.keys(schema).length === 0 ? {} : { [keyword]: schema }
}

function typeOf(value: unknown): JsonType {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value as 'string' | 'boolean' | 'object'
}
