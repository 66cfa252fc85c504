// Names of tables and columns. They depend only on what they name, so every node and every engine finds the same ones; which of two paths with one name
// gets the number depends on which came first, and is remembered in the stored schema.

import { createHash } from 'node:crypto'

const MAX_BYTES = 60
const HASH_DIGITS = 8

export const EVENT_COLUMNS = ['event', 'event_text']

/** The tables of the layout, each with the columns that only it has. A table of an event has the same as `tracks`. */
export const LAYOUT = {
  tracks: EVENT_COLUMNS,
  identifies: [],
  pages: ['name', 'category'],
  screens: ['name', 'category'],
  groups: ['group_id'],
  aliases: ['previous_id'],
  users: [],
  accounts: [],
} as const satisfies Record<string, readonly string[]>

export const ARCHIVE_TABLE = '_messages'

const LAYOUT_TABLES: ReadonlySet<string> = new Set(Object.keys(LAYOUT))

/** `day` is the column of the partition folders. The rest are columns of ours. */
const OWN_COLUMNS = [
  'id',
  'anonymous_id',
  'user_id',
  'received_at',
  'sent_at',
  'original_timestamp',
  'timestamp',
  'uuid_ts',
  'day',
  '_unfit',
  '_trait_times',
]

/** Words that need quotes in one of the engines, and the system columns of PostgreSQL, which no quotes help against. The same for all engines. */
const WORDS = `all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation column concurrently
 constraint create cross current_catalog current_date current_role current_schema current_time current_timestamp current_user default deferrable desc
 distinct do else end except false fetch final for foreign format freeze from full global grant group having ilike in initially inner intersect interval into
 is isnull join lateral leading left like limit localtime localtimestamp natural not notnull null offset on only or order outer overlaps pivot placing prewhere
 primary qualify references returning right sample select session_user settings similar some summarize symmetric system_user table tablesample then to trailing true
 union unique unpivot user using variadic verbose when where window with cmax cmin ctid oid tableoid xmax xmin`

const RESERVED: ReadonlySet<string> = new Set([...OWN_COLUMNS, ...WORDS.split(/\s+/)])
const RESERVED_TABLES: ReadonlySet<string> = new Set(WORDS.split(/\s+/))

/** `Order Completed`, `orderCompleted` and `order-completed` become `order_completed`. Empty if there is no letter or digit. */
export function snakeCase(name: string): string {
  return name
    .normalize('NFC')
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1_$2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1_$2')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}]+/gu, '_')
    .replace(/^_+|_+$/g, '')
}

/** The schema of a source, as a folder or in a database. `taken` are the names of the destination's other sources. */
export function schemaName(sourceName: string, taken: Iterable<string>): string {
  const others = new Set(taken)
  const snake = snakeCase(sourceName)
  const name = shortened(startsWell(snake === '' ? `source_${hash(sourceName)}` : snake))
  return firstFree(name, (candidate) => others.has(candidate))
}

/** Names are remembered, because they are needed for each message of an event. At most this many, and no longer ones: a sender chooses them. */
const MAX_KNOWN = 10_000
const MAX_REMEMBERED_LENGTH = 200
const events = new Map<string, string>()
const tables = new Map<string, string>()

/** The name of an event in snake case. */
export function eventName(event: string): string {
  return remembered(events, event, snakeCase)
}

/** The table of an event. Two events with the same snake case share one. */
export function eventTable(event: string): string {
  return remembered(tables, event, tableOf)
}

function tableOf(event: string): string {
  const snake = eventName(event)
  let name = snake === '' ? `event_${hash(event)}` : snake
  if (LAYOUT_TABLES.has(name)) name = `event_${name}`
  else if (RESERVED_TABLES.has(name)) name = `_${name}`
  return shortened(startsWell(name))
}

function remembered(known: Map<string, string>, event: string, find: (event: string) => string): string {
  const before = known.get(event)
  if (before !== undefined) return before
  const found = find(event)
  // Events can be unlimited in number, if a sender puts an id into their names.
  if (event.length > MAX_REMEMBERED_LENGTH) return found
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(event, found)
  return found
}

/** A free name for the column of a path, whose keys are given. `own` are the columns that the kind of table has itself. */
export function columnName(keys: readonly string[], own: ReadonlySet<string>, isTaken: (name: string) => boolean): string {
  const parts = keys.map(snakeCase).filter((part) => part !== '')
  const snake = parts.length === 0 ? `column_${hash(keys.join('.'))}` : parts.join('_')
  const name = RESERVED.has(snake) || own.has(snake) ? `_${snake}` : startsWell(snake)
  return firstFree(shortened(name), isTaken)
}

/** How paths are written: `properties.cart.total`. A dot in a key is escaped. */
export function pathOf(keys: readonly string[]): string {
  return keys.map((key) => key.replace(/[\\.]/g, '\\$&')).join('.')
}

export function keysOf(path: string): string[] {
  const keys = ['']
  for (let at = 0; at < path.length; at++) {
    const character = path[at] as string
    if (character === '.') keys.push('')
    else keys.push(`${keys.pop()}${character === '\\' ? path[++at] : character}`)
  }
  return keys
}

/** A name that starts with a digit needs quotes everywhere. */
function startsWell(name: string): string {
  return /^\p{N}/u.test(name) ? `_${name}` : name
}

function firstFree(name: string, isTaken: (name: string) => boolean): string {
  let candidate = name
  for (let number = 2; isTaken(candidate); number++) {
    const ending = `_${number}`
    candidate = `${cut(name, MAX_BYTES - ending.length)}${ending}`
  }
  return candidate
}

function shortened(name: string): string {
  if (Buffer.byteLength(name) <= MAX_BYTES) return name
  return `${cut(name, MAX_BYTES - HASH_DIGITS - 1)}_${hash(name)}`
}

/** At most so many bytes of UTF-8, whole characters. */
function cut(name: string, bytes: number): string {
  if (Buffer.byteLength(name) <= bytes) return name
  let result = ''
  for (const character of name) {
    if (Buffer.byteLength(result) + Buffer.byteLength(character) > bytes) break
    result += character
  }
  return result
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, HASH_DIGITS)
}
