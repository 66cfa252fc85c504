// The clients for servers behind one interface, so that one test can use each of them. They are created as users create them, unchanged, and
// only documented methods are called.

import { createRequire } from 'node:module'
import Rudderstack from '@rudderstack/rudder-sdk-node'
import { Analytics as Segment3 } from '@segment/analytics-node'
import { Analytics as Segment1 } from 'segment-node-1'
import { Analytics as Segment2 } from 'segment-node-2'

export type Kind = 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias'

export interface SenderSettings {
  writeKey: string
  host: string
  /** 1: no batching. The default is that of the client. */
  flushAt?: number
  /** Only for RudderStack's client. */
  gzip?: boolean
  oauthSettings?: { clientId: string; clientKey: string; keyId: string; authServer: string }
}

export interface Sender {
  /** Resolves with the argument of its callback: undefined, or the error. */
  call(kind: Kind, message: object): Promise<unknown>
  /** The client's own flush. */
  flush(): Promise<unknown>
  /** Flushes, and waits for the callbacks of all calls so far. */
  settled(): Promise<void>
  /** If the client has one: sends everything and accepts no more calls. */
  close?: () => Promise<void>
  /** Errors that the client reported apart from callbacks: with its `error` event or its `errorHandler`. */
  errors: unknown[]
  /** Calls after close, as the client reports them. */
  callsAfterClose: unknown[]
}

export type CreateSender = (settings: SenderSettings) => Sender

type Callback = (error?: unknown) => void
type Calls = Record<Kind, (message: object, callback: Callback) => unknown>

interface SegmentClient {
  flush(): Promise<void>
  closeAndFlush(): Promise<void>
  on(event: 'error' | 'call_after_close', handler: (value: unknown) => void): unknown
}

interface ClassicClient {
  flush(): Promise<unknown>
}

type ClassicConstructor = new (writeKey: string, options: Record<string, unknown>) => ClassicClient

// It has no types.
const AnalyticsNode = createRequire(import.meta.url)('analytics-node') as ClassicConstructor

/** All versions of `@segment/analytics-node`. */
const segment =
  (Client: new (settings: never) => unknown): CreateSender =>
  ({ writeKey, host, flushAt, oauthSettings }) => {
    const client = new Client(given({ writeKey, host, flushAt, oauthSettings }) as never) as SegmentClient
    const errors: unknown[] = []
    const callsAfterClose: unknown[] = []
    client.on('error', (error) => errors.push(error))
    client.on('call_after_close', (event) => callsAfterClose.push(event))
    const { call, answered } = callbacksOf(client as unknown as Calls)
    return {
      call,
      flush: () => client.flush(),
      async settled() {
        await client.flush()
        await answered()
      },
      close: () => client.closeAndFlush(),
      errors,
      callsAfterClose,
    }
  }

/** `analytics-node`, and RudderStack's client, which is derived from it. */
const classic =
  (Client: ClassicConstructor, hostOption: string): CreateSender =>
  ({ writeKey, host, flushAt, gzip, oauthSettings }) => {
    const errors: unknown[] = []
    const errorHandler = (error: unknown): number => errors.push(error)
    const client = new Client(writeKey, given({ [hostOption]: host, flushAt, gzip, oauthSettings, errorHandler }))
    const { call, answered } = callbacksOf(client as unknown as Calls)
    return {
      call,
      flush: () => client.flush(),
      async settled() {
        await client.flush()
        await answered()
      },
      errors,
      callsAfterClose: [],
    }
  }

/** Removes settings that are undefined. */
function given(settings: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined))
}

function callbacksOf(client: Calls): { call: Sender['call']; answered: () => Promise<unknown> } {
  const answers: Promise<unknown>[] = []
  return {
    call(kind, message) {
      const answer = new Promise<unknown>((resolve) => client[kind](message, (error) => resolve(error ?? undefined)))
      answers.push(answer)
      return answer
    },
    answered: () => Promise.all(answers),
  }
}

export const createSegment1 = segment(Segment1)
export const createSegment2 = segment(Segment2)
export const createSegment3 = segment(Segment3)
export const createAnalyticsNode = classic(AnalyticsNode, 'host')
export const createRudderstack = classic(Rudderstack, 'dataPlaneUrl')
