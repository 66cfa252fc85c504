// What the search dialog (⌘K) finds, and in which order. Pure: the dialog loads the data and draws the items.

import type { Schemas } from './api/client.ts'

export type ItemKind = 'page' | 'action' | 'source' | 'destination' | 'event' | 'plan' | 'incident' | 'message' | 'user' | 'docs'

export interface Item {
  id: string
  kind: ItemKind
  label: string
  description: string
  /** Other words by which it is found. */
  keywords?: string
  /** Where it leads. A path of the documentation is opened in a new tab. */
  to?: string
  /** Asks which deliveries of this destination to replay. */
  replayOf?: string
}

export interface SearchData {
  pages: readonly { path: string; label: string; about?: string }[]
  sources: readonly Pick<Schemas['Source'], 'id' | 'name'>[]
  destinations: readonly { id: string; name: string; paused: boolean; enabled: boolean; shared?: boolean | undefined }[]
  events: readonly { id: string; event: string | null; type: string | null; sourceName: string }[]
  plans: readonly { id: string; name: string }[]
  incidents: readonly { id: string; message: string; since: string }[]
  docs: readonly (readonly [path: string, title: string, section: string])[]
  mayEdit: boolean
}

/** Text that may be the id of a message or a delivery: no white space, and at least 8 characters. */
const LOOKS_LIKE_ID = /^\S{8,}$/
const LOOKS_LIKE_USER = /^\S{1,200}$/
const MAX_ITEMS = 20

/** Without a text, the pages and what is wrong now. */
export function foundItems(data: SearchData, text: string): Item[] {
  const query = text.trim()
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return [...incidentItems(data), ...pageItems(data)].slice(0, MAX_ITEMS)
  const ranked = allItems(data)
    .map((item, index) => ({ item, index, rank: rankOf(item, words) }))
    .filter(({ rank }) => rank !== null)
    .sort((one, other) => (one.rank as number) - (other.rank as number) || one.index - other.index)
    .map(({ item }) => item)
  // Last, so that a source or destination with a long name that matches comes first.
  return [...ranked.slice(0, MAX_ITEMS - 2), ...lookups(query)]
}

function allItems(data: SearchData): Item[] {
  return [
    ...pageItems(data),
    ...data.sources.map(({ id, name }): Item => item('source', id, name, `Source ${id}`, `/sources/${id}`)),
    ...data.destinations.map(({ id, name }): Item => item('destination', id, name, `Destination ${id}`, `/destinations/${id}`)),
    ...incidentItems(data),
    ...data.events.map(({ id, event, type, sourceName }): Item => {
      return item('event', id, event ?? `${type ?? 'unknown'} calls`, `Event of ${sourceName}`, `/events/${encodeURIComponent(id)}`)
    }),
    ...data.plans.map(({ id, name }): Item => item('plan', id, name, 'Tracking plan', `/plans/${id}`)),
    ...(data.mayEdit ? data.destinations.filter(({ shared }) => shared !== true).flatMap(actionsOf) : []),
    ...data.docs.map(([path, title, section]): Item => item('docs', `docs ${path}`, title, `Documentation: ${section}`, path)),
  ]
}

function item(kind: ItemKind, id: string, label: string, description: string, to: string): Item {
  return { id: `${kind} ${id}`, kind, label, description, keywords: id, to }
}

function pageItems({ pages }: SearchData): Item[] {
  return pages.map(({ path, label, about = '' }) => ({ id: path, kind: 'page', label, description: about, to: path }))
}

function incidentItems({ incidents }: SearchData): Item[] {
  return incidents.map(({ id, message, since }) => item('incident', id, message, `Incident since ${since}`, `/alerts/${id}`))
}

function actionsOf({ id, name, paused, enabled }: SearchData['destinations'][number]): Item[] {
  const ask = (verb: string, what: string, description: string): Item => {
    return { id: `${what} ${id}`, kind: 'action', label: `${verb} ${name}`, description, to: `/destinations/${id}?ask=${what}` }
  }
  // Nothing happens just because a link was followed.
  const open = (verb: string, what: string): Item => {
    return { ...ask(verb, what, 'Opens the destination, which has the button'), to: `/destinations/${id}` }
  }
  return [
    paused ? open('Resume', 'resume') : ask('Pause', 'pause', 'Asks first; keeps its messages until you resume it'),
    enabled ? ask('Disable', 'disable', 'Asks first; new messages skip it') : open('Enable', 'enable'),
    {
      id: `replay ${id}`,
      kind: 'action',
      label: `Replay failed of ${name}`,
      description: 'Counts its failed and expired deliveries, and asks first',
      keywords: 'replay failed deliveries retry again',
      replayOf: id,
    },
    { ...ask('Send a test to', 'test', 'Opens the test of the destination'), to: `/destinations/${id}?tab=test` },
  ]
}

/** Null if a word is missing. Labels that begin with the text come first, then labels that contain its words, then the rest. */
function rankOf({ label, description, keywords = '' }: Item, words: readonly string[]): number | null {
  const title = label.toLowerCase()
  if (title.startsWith(words.join(' '))) return 0
  if (words.every((word) => title.includes(word))) return 1
  const all = `${title} ${description} ${keywords}`.toLowerCase()
  return words.every((word) => all.includes(word)) ? 2 : null
}

function lookups(query: string): Item[] {
  const message: Item = {
    id: 'message',
    kind: 'message',
    label: `Find message ${query}`,
    description: 'Shows its timeline and deliveries',
    to: `/messages/${encodeURIComponent(query)}`,
  }
  const user: Item = {
    id: 'user',
    kind: 'user',
    label: `Messages of user ${query}`,
    description: 'Messages with exactly this userId',
    to: `/messages?userId=${encodeURIComponent(query)}`,
  }
  return [...(LOOKS_LIKE_ID.test(query) ? [message] : []), ...(LOOKS_LIKE_USER.test(query) ? [user] : [])]
}
