// The live feed across nodes: whoever listens at one of them sees what happens at all. A node tells the others what is listened
// for at it; they send what fits, in a few small messages a second, and only while somebody listens. What does not fit is
// counted and told, as at one node. What comes from another node is only ever shown to those who listen.

import type { Channel, Nodes } from '../store/store.ts'
import type { LiveEvent, LiveFeed, LiveFilter, Relay } from './live.ts'

const KEY = 'live'
const SEND_EVERY_MS = 250
/** A message of the channel holds some events; those over this go without the content that makes them large. */
const LARGE_BYTES = 2_000
/** What may wait for the next message, and so all that is sent in one turn. */
const MESSAGES_PER_TURN = 2
const FIELDS = ['sourceId', 'destinationId', 'type', 'messageId', 'event', 'userId', 'what'] as const
const EVENTS = new Set(['accepted', 'rejected', 'attempt'])
const MAX_FILTERS = 100
const FIELD_CHARACTERS = 200

/** As it is sent: name, keys of the filters that want it, JSON. */
type Sent = [event: string, keys: string[], json: string]

export interface LiveRelayOptions {
  live: LiveFeed
  nodes: Nodes
  channel: Channel
  /** For tests: calls once after so many milliseconds. */
  setTimer?: (run: () => void, delayMs: number) => () => void
}

export class LiveRelay implements Relay {
  readonly #options: Required<LiveRelayOptions>
  /** By key, what is listened for at other nodes. */
  #filters = new Map<string, LiveFilter>()
  #waiting: string[] = []
  #waitingBytes = 0
  #missed = new Map<string, number>()
  #cancel: (() => void) | null = null

  constructor(options: LiveRelayOptions) {
    this.#options = { setTimer: systemTimer, ...options }
    options.nodes.onChange(() => this.#exchange())
    options.channel.onMessage((text) => this.#receive(text))
  }

  offer(event: LiveEvent['event'], wants: (filter: LiveFilter) => boolean, json: () => string): void {
    const keys: string[] = []
    for (const [key, filter] of this.#filters) if (wants(filter)) keys.push(key)
    if (keys.length === 0) return
    this.#cancel ??= this.#options.setTimer(() => this.#send(), SEND_EVERY_MS)
    const { maxBytes } = this.#options.channel
    // Asked before it is written out: what will not fit costs nothing more than being counted.
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

  /** As few messages as hold it all; what was missed goes with the first. */
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
      // Too many filters to name all that missed something: the events are what matters.
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
    for (const [event, keys, json] of message.events) live.hear(keys, { event, json })
    for (const [key, count] of message.missed) live.missed(key, count)
  }
}

/** An event without what makes it large, if it has that. */
function withoutContent(json: string): string {
  const event = JSON.parse(json) as Record<string, unknown>
  return JSON.stringify({ ...event, ...('message' in event ? { message: null } : {}), ...('sample' in event ? { sample: '' } : {}) })
}

function read(value: unknown): [string, LiveFilter][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, given]: [string, unknown]): [string, LiveFilter][] => {
    if (key.length > FIELD_CHARACTERS || typeof given !== 'object' || given === null) return []
    const filter: LiveFilter = {}
    for (const field of FIELDS) {
      const wanted: unknown = (given as Record<string, unknown>)[field]
      if (wanted === undefined) continue
      // A filter of a version that knows more of them would show too much.
      if (typeof wanted !== 'string' || wanted.length > FIELD_CHARACTERS) return []
      filter[field] = wanted as never
    }
    return [[key, filter]]
  })
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

/** It goes out as it is, as a line of a stream: it must be one line, and JSON. */
function isObject(json: string): boolean {
  if (/[\r\n]/.test(json)) return false
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null
  } catch {
    return false
  }
}

function systemTimer(run: () => void, delayMs: number): () => void {
  const timer = setTimeout(run, delayMs).unref()
  return () => clearTimeout(timer)
}
