// The messages between an ingest thread and the main thread. Everything from one turn of the event loop is sent as one message.

import type { MessagePort } from 'node:worker_threads'
import type { Peer } from '../../http/port-stream.ts'
import type { TraceContext } from '../../model/messages.ts'
import type { BodyFailure } from '../body/read-body.ts'
import type { Route } from '../parsing/parse-request.ts'

/** What a thread is started with. */
export interface ThreadStart {
  /** The first one must be available, the others need not be. */
  addresses: readonly string[]
  /** 0 for any. */
  port: number
  settings: ThreadSettings
  trustedProxies: readonly string[]
  writeKeys: readonly string[]
}

export interface ThreadSettings {
  bodyTimeoutMs: number
  /** The maximum number of bytes of all bodies that are being read. */
  maxBodiesBytes: number
  /** The maximum number of bytes of all bodies that were read and are not answered. */
  maxUnansweredBytes: number
}

/**
 * The fields of requests one after the other, FIELDS for each: cloning a flat list takes a fraction of the time that objects take. The body of a
 * request is as many bytes of the packet as the last field says, or was not read, and the last field says why.
 */
export type RequestField = number | string | boolean | null | undefined | TraceContext
export const FIELDS = 7
export type RequestFields = [
  id: number,
  route: Route,
  authorization: string | undefined,
  address: string | null,
  isFromBrowser: boolean,
  trace: TraceContext | null,
  body: number | Exclude<BodyFailure, 'gone'>,
]

export interface RequestPacket {
  fields: RequestField[]
  bytes: Uint8Array<ArrayBuffer>
}

export type FromThread =
  | { kind: 'listening'; address: string; family: string; port: number }
  | { kind: 'failed'; code: string | undefined; message: string }
  | { kind: 'requests'; packet: RequestPacket }
  /** A connection for a request that the main thread answers. */
  | { kind: 'connect'; port: MessagePort; peer: Peer }
  | { kind: 'pong' }

export interface AnswerPacket {
  /** The ids of requests that are answered with the usual success. */
  succeeded: number[]
  answers?: [id: number, status: number, text: string, headers: readonly string[]][]
}

export type ToThread =
  | { kind: 'answers'; packet: AnswerPacket }
  /** All write keys, after a change. */
  | { kind: 'keys'; writeKeys: readonly string[] }
  | { kind: 'ping' }
  /** Answers what has been received, and then ends. Connections that are open after `graceMs` are closed. */
  | { kind: 'stop'; graceMs: number }
