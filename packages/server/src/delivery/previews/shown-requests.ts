// Requests that are shown and not sent: previews, and reconstructions of past requests. They are built by the functions that also build what
// is sent. Transformations run in threads of their own, which exist only while they are used, so a preview delays no delivery.

import type { JsonObject } from '@switchyard/protocol'
import { kindOf } from '../../destinations/kinds.ts'
import type { Credentials, Prepared, RequestBuilder } from '../../destinations/port/kind.ts'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import type { Destination, SegmentContent, TraceContext } from '../../store/store.ts'
import type { Rejected } from '../link/outcome.ts'
import { builtMessage } from '../sender/loaded-messages.ts'
import { type Item, prepareMessage, transformInput, transformMessages } from '../sender/transforming/prepare-messages.ts'
import type { Transformer } from '../sender/transforming/transformer.ts'
import { PREVIEW_LIMIT_MS, PreviewTurns, TooManyPreviews } from './preview-turns.ts'

/** How long the threads are kept after their last use. */
const IDLE_MS = 30_000

/** What would happen to a message that is routed to a destination. The request is the one to the first URL. */
export type Previewed =
  | { kind: 'request'; request: { method: string; url: string; headers: Record<string, string>; body: string }; logs: string | null }
  /** What an integration would send; the error says why it could not go on. `failure` is the reason if the message could not be sent. */
  | { kind: 'requests'; requests: readonly PreviewedRequest[]; error: string | null; failure?: string | null; logs: string | null }
  | { kind: 'dropped'; logs: string | null }
  /** The reason is `not_run` if there was no time left, or if the transformation could not be run for a reason of the service. */
  | { kind: 'failed'; reason: Rejected['reason'] | 'not_run'; error: string; logs: string | null }

export interface PreviewedRequest {
  subscription: string
  method: string
  url: string
  headers: Readonly<Record<string, string>>
  body: string
}

export interface OutboundMessage {
  message: JsonObject
  receivedAtMs: number
}

export class ShownRequests {
  readonly #open: () => Transformer
  readonly #turns = new PreviewTurns()
  #transformer: Transformer | null = null
  #idle: NodeJS.Timeout | undefined

  constructor(open: () => Transformer) {
    this.#open = open
  }

  /**
   * Prepares messages one after the other, as a sender would. The result is null for messages that were not ready before the limit. Rejects
   * with TooManyPreviews.
   */
  async prepare(
    destination: Destination,
    messages: readonly OutboundMessage[],
    limitMs: number = PREVIEW_LIMIT_MS,
  ): Promise<(Item | null)[]> {
    if (kindOf(destination).transformation(destination) === null) return messages.map(({ message }) => prepareMessage(destination, message))
    clearTimeout(this.#idle)
    this.#transformer ??= this.#open()
    const transformer = this.#transformer
    const closeLater = (): void => {
      if (this.#turns.isIdle) this.#idle = setTimeout(() => void this.close(), IDLE_MS).unref()
    }
    return this.#turns.run(messages, limitMs, (message, leftMs) => transformed(destination, message, transformer, leftMs), closeLater)
  }

  /** Like prepare(), but resolves to null if too many previews are running. */
  tryToPrepare(destination: Destination, messages: readonly OutboundMessage[]): Promise<(Item | null)[] | null> {
    return this.prepare(destination, messages).catch((error: unknown) => {
      if (error instanceof TooManyPreviews) return null
      throw error
    })
  }

  /** See Delivery.preview(). */
  async preview(
    given: Destination,
    requests: RequestBuilder<Destination>,
    messages: readonly SegmentContent[],
    atMs: number,
  ): Promise<Previewed[]> {
    const destination = requests.masked(given)
    const outbound = messages.map((content) => ({ message: builtMessage(destination, content, 0), receivedAtMs: content.receivedAtMs }))
    const items = await this.prepare(destination, outbound)
    return items.map((item, at) => previewed(destination, requests, item, messages[at]?.trace ?? null, atMs))
  }

  /** Ends the threads. The next preview starts them again. */
  async close(): Promise<void> {
    clearTimeout(this.#idle)
    const transformer = this.#transformer
    this.#transformer = null
    await transformer?.close()
  }
}

/** The URL of a request: its path goes between the path and the query of the target. */
function urlOf(target: string, path: string): string {
  if (path === '') return target
  const { origin, pathname, search } = new URL(target)
  return origin + pathname.replace(/\/$/, '') + path + search
}

export function isSendable(item: Item | null): item is string | Prepared {
  return typeof item === 'string' || (item !== null && 'text' in item)
}

/** `headers` are names and values that alternate. Nobody sees the credentials of `auth`, not even admins. */
export function shownHeaders({ auth }: Credentials, headers: readonly string[]): Record<string, string> {
  const result: Record<string, string> = {}
  for (let at = 0; at < headers.length; at += 2) result[headers[at] as string] = headers[at + 1] as string
  return auth === null ? result : { ...result, Authorization: HIDDEN }
}

function previewed(
  destination: Destination,
  requests: RequestBuilder<Destination>,
  item: Item | null,
  trace: TraceContext | null,
  atMs: number,
): Previewed {
  if (item === null) return NOT_REACHED
  if (item instanceof Error) return notRun(`The transformation could not be run: ${item.message}.`)
  if (!isSendable(item)) {
    const { reason, error, logs } = item
    return error === null ? { kind: 'dropped', logs } : { kind: 'failed', reason, error, logs }
  }
  const about = { id: 'preview', attempt: 1, replay: false, atMs, trace }
  const { method, path, headers, body } = requests.build(destination, [item], destination.batch.size > 1, about)
  const url = urlOf(kindOf(destination).targets(destination)[0] as string, path)
  return {
    kind: 'request',
    request: { method, url, headers: shownHeaders(requests.credentials(destination), headers), body },
    logs: typeof item === 'string' ? null : (item.logs ?? null),
  }
}

/** The outcome for a message whose turn did not come, or did not end, before the limit. */
export const NOT_REACHED: Previewed = notRun('The preview did not reach this message within its time limit.')

export function notRun(error: string): Previewed {
  return { kind: 'failed', reason: 'not_run', error, logs: null }
}

/** Resolves to null if it takes longer than `limitMs`. */
function transformed(
  destination: Destination,
  { message, receivedAtMs }: OutboundMessage,
  transformer: Transformer,
  limitMs: number,
): Promise<Item | null> {
  return new Promise((resolve) => {
    const cancel = transformMessages(destination, [transformInput(message, receivedAtMs)], transformer, ([item]) => {
      clearTimeout(limit)
      resolve(item ?? new Error('no result'))
    })
    const limit = setTimeout(() => {
      cancel()
      resolve(null)
    }, limitMs)
  })
}
