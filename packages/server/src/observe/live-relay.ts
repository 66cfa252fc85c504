// The live feed across nodes: a listener on one node sees the events of all nodes. Each node publishes the filters of its listeners.
// The other nodes send matching events, in a few small messages per second and only while someone listens. Events that do not fit
// are counted and reported as dropped. Events from other nodes are only passed to listeners and used for nothing else.

import type { Channel, Nodes } from '../store/store.ts'
import { backgroundTimer, type SetTimer } from '../timing/timers.ts'
import { FILTER_FIELDS, type LiveEvent, type LiveFeed, type LiveFilter, type Relay } from './live.ts'

const KEY = 'live'
const SEND_EVERY_MS = 250
/** A channel message contains several events. Events larger than this are sent without the content of their message. */
const LARGE_BYTES = 2_000
/** The number of channel messages per interval. It also limits the events that wait for the next interval. */
const MESSAGES_PER_TURN = 2
const EVENTS = new Set(['accepted', 'rejected', 'attempt'])
const MAX_FILTERS = 100
const FIELD_CHARACTERS = 200

/** The wire format of an event: name, keys of the matching filters, JSON. */
type Sent = [event: string, keys: string[], json: string]

export interface LiveRelayOptions {
  live: LiveFeed
  nodes: Nodes
  channel: Channel
  setTimer?: SetTimer
}

export class LiveRelay implements Relay {
  readonly #options: Required<LiveRelayOptions>
  /** The filters of listeners on other nodes, by key. */
  #filters = new Map<string, LiveFilter>()
  #waiting: string[] = []
  #waitingBytes = 0
  #missed = new Map<string, number>()
  #cancel: (() => void) | null = null

  constructor(options: LiveRelayOptions) {
    this.#options = { setTimer: backgroundTimer, ...options }
    options.nodes.onChange(() => this.#exchange())
    options.channel.onMessage((text) => this.#receive(text))
  }

  offer(event: LiveEvent['event'], wants: (filter: LiveFilter) => boolean, json: () => string): void {
    const keys: string[] = []
    for (const [key, filter] of this.#filters) if (wants(filter)) keys.push(key)
    if (keys.length === 0) return
    this.#cancel ??= this.#options.setTimer(() => this.#send(), SEND_EVERY_MS)
    const { maxBytes } = this.#options.channel
    // Checked before the event is serialised, so that a dropped event costs no more than counting it.
    const entry = this.#waitingBytes >= maxBytes * MESSAGES_PER_TURN ? null : this.#entry(event, keys, json())
    if (entry === null) {
      for (const key of keys) this.#missed.set(key, (this.#missed.get(key) ?? 0) + 1)
      return
    }
    this.#waiting.push(entry)
    this.#waitingBytes += Buffer.byteLength(entry)
  }

  close(): void {
    this.#cancel?.()
    this.#cancel = null
    this.#options.live.useRelay(null)
    this.#filters.clear()
  }

  #entry(event: string, keys: string[], json: string): string | null {
    const short = Buffer.byteLength(json) > LARGE_BYTES ? withoutContent(json) : json
    const sent: Sent = [event, keys, short]
    const entry = JSON.stringify(sent)
    return Buffer.byteLength(entry) > this.#options.channel.maxBytes / 2 ? null : entry
  }

  #exchange(): void {
    const { live, nodes } = this.#options
    const { wanted } = live
    nodes.announce(KEY, wanted.size === 0 ? undefined : Object.fromEntries(wanted))
    const filters = new Map<string, LiveFilter>()
    for (const { doc } of nodes.others())
      for (const [key, filter] of read(doc[KEY])) if (filters.size < MAX_FILTERS) filters.set(key, filter)
    this.#filters = filters
    live.useRelay(filters.size === 0 ? null : this)
  }

  /** Sends the waiting events in as few messages as possible. The first one contains the counts of dropped events. */
  #send(): void {
    this.#cancel = null
    const { channel } = this.#options
    const entries = this.#waiting
    let missed: Record<string, number> | undefined = this.#missed.size === 0 ? undefined : Object.fromEntries(this.#missed)
    this.#waiting = []
    this.#waitingBytes = 0
    this.#missed = new Map()
    while (entries.length > 0 || missed !== undefined) {
      let text = `{"missed":${JSON.stringify(missed ?? {})},"events":[`
      let bytes = Buffer.byteLength(text) + 2
      let count = 0
      while (count < entries.length) {
        const own = Buffer.byteLength(entries[count] as string) + 1
        if (bytes + own > channel.maxBytes) break
        bytes += own
        count++
      }
      // Protects against an endless loop. If the counts of dropped events are too large for a message, they are left out: events matter more.
      if (count === 0 && entries.length > 0 && missed === undefined) return
      text += entries.splice(0, count).join(',')
      missed = undefined
      if (bytes <= channel.maxBytes) channel.publish(`${text}]}`)
    }
  }

  #receive(text: string): void {
    const { live } = this.#options
    if (live.listeners === 0) return
    const message = parsed(text)
    if (message === undefined) return
    for (const [event, keys, json] of message.events) live.receive(keys, { event, json })
    for (const [key, count] of message.missed) live.missed(key, count)
  }
}

/** Removes the content of the message or the sample from an event. */
function withoutContent(json: string): string {
  const event = JSON.parse(json) as Record<string, unknown>
  return JSON.stringify({ ...event, ...('message' in event ? { message: null } : {}), ...('sample' in event ? { sample: '' } : {}) })
}

function read(value: unknown): [string, LiveFilter][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, given]: [string, unknown]): [string, LiveFilter][] => {
    if (key.length > FIELD_CHARACTERS || typeof given !== 'object' || given === null) return []
    const { sourceIds } = given as { sourceIds?: unknown }
    if (sourceIds !== undefined && !isListOfIds(sourceIds)) return []
    const filter: LiveFilter = sourceIds === undefined ? {} : { sourceIds }
    for (const field of FILTER_FIELDS) {
      const wanted: unknown = (given as Record<string, unknown>)[field]
      if (wanted === undefined) continue
      // An invalid field makes the whole filter invalid. Ignoring the field would show too many events.
      if (typeof wanted !== 'string' || wanted.length > FIELD_CHARACTERS) return []
      filter[field] = wanted as never
    }
    return [[key, filter]]
  })
}

function isListOfIds(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((id) => typeof id === 'string' && id.length <= FIELD_CHARACTERS)
}

interface Message {
  events: [event: LiveEvent['event'], keys: string[], json: string][]
  missed: [key: string, count: number][]
}

function parsed(text: string): Message | undefined {
  let value: { events?: unknown; missed?: unknown }
  try {
    value = JSON.parse(text) as typeof value
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || !Array.isArray(value.events)) return undefined
  const events = (value.events as unknown[]).flatMap((entry): Message['events'] => {
    if (!Array.isArray(entry)) return []
    const [event, keys, json] = entry as unknown[]
    if (typeof event !== 'string' || !EVENTS.has(event) || !Array.isArray(keys) || typeof json !== 'string') return []
    return isObject(json) ? [[event as LiveEvent['event'], keys as string[], json]] : []
  })
  const missed = Object.entries(value.missed ?? {}).filter(
    (entry): entry is [string, number] => Number.isSafeInteger(entry[1]) && (entry[1] as number) > 0,
  )
  return { events, missed }
}

/** The text is sent unchanged as one line of an event stream, so it must be a single line of valid JSON. */
function isObject(json: string): boolean {
  if (/[\r\n]/.test(json)) return false
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null
  } catch {
    return false
  }
}
