// The live events of GET /api/live. Connects with the session cookie, reconnects with increasing delays, and passes on the events of each
// chunk together. Uses fetch rather than EventSource, which does not say why a connection was rejected.

import { useEffect, useRef, useState } from 'react'
import { ApiProblem, addressOf, call, type Query } from './client.ts'
import { EventParser } from './event-stream.ts'

export interface LiveAccepted {
  kind: 'accepted'
  at: string
  sourceId: string
  messageId: string | null
  type: string | null
  event: string | null
  userId: string | null
  anonymousId: string | null
  /** Whether the message was accepted before, so that this copy is dropped. */
  duplicate: boolean
  bytes: number | null
  /** As it is sent to webhooks; null if it is larger than 8 KB. */
  message: Record<string, unknown> | null
}

export interface LiveRejected {
  kind: 'rejected'
  at: string
  sourceId: string | null
  code: string
  messages: number
  sample: string
}

export interface LiveAttempt {
  kind: 'attempt'
  at: string
  destinationId: string
  deliveryId: string
  messageId: string | null
  sourceId: string | null
  /** The fields from here to anonymousId, like the ids above, are those of the first message if there are several. */
  type: string | null
  event: string | null
  userId: string | null
  anonymousId: string | null
  messages: number
  attempt: number
  replay: boolean
  url: string
  success: boolean
  verdict: 'success' | 'temporary' | 'permanent'
  status: number | null
  reason: string | null
  error: string | null
  totalMs: number
  traceId: string | null
}

/** The number of events that are missing because there were too many of them. */
export interface LiveDropped {
  kind: 'dropped'
  count: number
  /** How many of them were of each kind, if known. */
  accepted?: number
  rejected?: number
  attempts?: number
  /** How many of the attempts failed. */
  failures?: number
}

export type LiveEvent = LiveAccepted | LiveRejected | LiveAttempt | LiveDropped
export type LiveQuery = Query<'GET /api/live'>

export type LiveState =
  | { is: 'connecting' }
  | { is: 'open' }
  | { is: 'paused' }
  /** Not connected: the reason, and the time of the next try in milliseconds since 1970. */
  | { is: 'waiting'; problem: ApiProblem; untilMs: number }

const KINDS = new Set(['accepted', 'rejected', 'attempt', 'dropped'])
const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 30_000
/** The service sends a keep-alive every 15 seconds. After this long without data the connection is considered dead. */
const SILENCE_MS = 40_000

interface LiveOptions {
  query: LiveQuery
  onEvents: (events: LiveEvent[]) => void
  onState: (state: LiveState) => void
}

/** Connects, and connects again after an error. Returns a function that disconnects; it reports no state. */
function openLive({ query, onEvents, onState }: LiveOptions): () => void {
  let connection: AbortController | null = null
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  const connect = async (): Promise<void> => {
    const own = new AbortController()
    connection = own
    onState({ is: 'connecting' })
    let problem: ApiProblem
    try {
      await read(own)
      problem = new ApiProblem(0, 'stream_ended', 'The service closed the connection.')
    } catch (error) {
      problem = error instanceof ApiProblem ? error : new ApiProblem(0, 'unreachable', 'The connection to the service was lost.')
    }
    if (connection !== own) return
    // The session may have expired. If so, a normal API call notices it and shows the login form.
    if (problem.status === 401 || problem.code === 'stream_ended') void call('GET /api/session').catch(() => {})
    const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures++)
    timer = setTimeout(() => void connect(), waitMs)
    onState({ is: 'waiting', problem, untilMs: Date.now() + waitMs })
  }
  const read = async (own: AbortController): Promise<void> => {
    const response = await fetch(addressOf('/api/live', {}, query), {
      credentials: 'same-origin',
      headers: { accept: 'text/event-stream' },
      signal: own.signal,
    })
    if (!response.ok || response.body === null) throw await problemOf(response)
    if (connection !== own) return
    failures = 0
    onState({ is: 'open' })
    const reader = response.body.getReader()
    const decoder = new TextDecoder()
    const parser = new EventParser()
    for (;;) {
      const { done, value } = await withinSilence(reader.read(), own)
      if (done || connection !== own) return
      const events = parser.take(decoder.decode(value, { stream: true })).flatMap(({ event, data }) => liveEvent(event, data))
      if (events.length > 0) onEvents(events)
    }
  }
  void connect()
  return () => {
    clearTimeout(timer)
    connection?.abort()
    connection = null
  }
}

async function withinSilence<T>(reading: Promise<T>, connection: AbortController): Promise<T> {
  const timer = setTimeout(() => connection.abort(), SILENCE_MS)
  try {
    return await reading
  } finally {
    clearTimeout(timer)
  }
}

async function problemOf(response: Response): Promise<ApiProblem> {
  const { code = 'unknown', message = `The service responded with status ${response.status}.` } = (await response
    .json()
    .catch(() => ({}))) as {
    code?: string
    message?: string
  }
  return new ApiProblem(response.status, code, message)
}

function liveEvent(event: string, data: string): LiveEvent[] {
  if (!KINDS.has(event)) return []
  try {
    return [{ ...(JSON.parse(data) as object), kind: event } as LiveEvent]
  } catch {
    return []
  }
}

interface UseLiveOptions {
  query?: LiveQuery
  onEvents: (events: LiveEvent[]) => void
  isOn?: boolean
  round?: number
}

/** Listens while the component is mounted and `isOn` is true. The query and the handler may change. A new `round` reconnects. */
export function useLive({ query, onEvents, isOn = true, round = 0 }: UseLiveOptions): LiveState {
  const [state, setState] = useState<LiveState>({ is: isOn ? 'connecting' : 'paused' })
  const handler = useRef(onEvents)
  handler.current = onEvents
  const asked = JSON.stringify(query ?? {})
  useEffect(() => {
    if (!isOn) {
      setState({ is: 'paused' })
      return
    }
    return openLive({ query: JSON.parse(asked) as LiveQuery, onEvents: (events) => handler.current(events), onState: setState })
  }, [asked, isOn, round])
  return state
}
