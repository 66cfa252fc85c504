// The columns of the list of messages, chosen by the viewer: in the address as `columns`, and remembered in this browser. A column is one of
// the known ones, or the path of a property. Pure except for the storage.

export const COLUMNS = {
  received: { label: 'Received', width: '11rem' },
  type: { label: 'Type', width: '5.5rem' },
  event: { label: 'Event', width: 'minmax(0, 2fr)' },
  user: { label: 'User', width: 'minmax(0, 1.2fr)' },
  source: { label: 'Source', width: 'minmax(0, 1fr)' },
  messageId: { label: 'messageId', width: 'minmax(0, 1.5fr)' },
  outcome: { label: 'Deliveries', width: 'minmax(0, 2fr)' },
} as const
export type ColumnName = keyof typeof COLUMNS

export const DEFAULT_COLUMNS: readonly string[] = ['received', 'type', 'event', 'user', 'source', 'outcome']

const MAX_COLUMNS = 12
const MAX_PATH = 200

export function isKnown(column: string): column is ColumnName {
  return Object.hasOwn(COLUMNS, column)
}

/** The columns in a text of the address or the storage. The event is always there, because it is the name of the message. */
export function columnsOf(text: string | null): readonly string[] {
  if (text === null || text === '') return DEFAULT_COLUMNS
  const wanted = [...new Set(text.split(','))].filter((each) => isKnown(each) || (each.includes('.') && each.length <= MAX_PATH))
  const columns = wanted.slice(0, MAX_COLUMNS)
  if (columns.length === 0) return DEFAULT_COLUMNS
  return columns.includes('event') ? columns : ['event', ...columns]
}

/** The text for the address; null for the default columns. */
export function columnsText(columns: readonly string[]): string | null {
  const text = columns.join(',')
  return text === DEFAULT_COLUMNS.join(',') ? null : text
}

/** Adds or removes a column. Known columns keep their order; properties come before the deliveries. */
export function withColumn(columns: readonly string[], column: string, isOn: boolean): readonly string[] {
  const others = columns.filter((each) => each !== column)
  if (!isOn) return others
  const all = [...others, column]
  const known = Object.keys(COLUMNS).filter((name) => name !== 'outcome' && all.includes(name))
  const properties = all.filter((name) => !isKnown(name))
  return [...known, ...properties, ...(all.includes('outcome') ? ['outcome'] : [])]
}

export function labelOf(column: string): string {
  return isKnown(column) ? COLUMNS[column].label : column.replace(/^(?:properties|traits)\./, '')
}

export function templateOf(columns: readonly string[]): string {
  return columns.map((column) => (isKnown(column) ? COLUMNS[column].width : 'minmax(0, 1fr)')).join(' ')
}

const KEY = 'switchyard.messages.columns'

export function rememberedColumns(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null
  }
}

export function rememberColumns(text: string | null): void {
  try {
    if (text === null) localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, text)
  } catch {
    // Storage is full or not allowed: the columns are in the address.
  }
}
