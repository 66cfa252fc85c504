// The format of a segment's body. It is the body of the request if that contains exactly what was accepted, so that usually no JSON is written;
// otherwise it is an object of the same shape. Messages are not validated here, because ingest has validated them.

import type { JsonObject } from '@switchyard/protocol'
import type { SegmentContent } from '../../model/messages.ts'
import { parseBatchItems } from './scan-json.ts'

export interface StoredBody {
  batch: readonly (JsonObject | null)[]
  sentAt?: string | null | undefined
  context?: JsonObject | null | undefined
  integrations?: JsonObject | null | undefined
}

export function writeStoredBody(body: StoredBody): Buffer {
  const { batch, sentAt, context, integrations } = body
  return Buffer.from(
    JSON.stringify({ batch, sentAt: sentAt ?? undefined, context: context ?? undefined, integrations: integrations ?? undefined }),
  )
}

/** What is known of a segment without reading its body. */
export type SegmentAbout = Pick<SegmentContent, 'sourceId' | 'receivedAtMs' | 'ip' | 'browser' | 'trace' | 'violations'>

/** The messages of a segment as they are stored. They are parsed only when they are needed, usually in a sender thread. */
export class SegmentBody {
  readonly about: SegmentAbout
  readonly bytes: Uint8Array
  /** The indexes of messages that are in the bytes but must not be sent: duplicates, and messages of deleted users. */
  readonly absent: readonly number[]
  #content: SegmentContent | null

  /** `content`: the parsed messages, if the caller has them already. */
  constructor(bytes: Uint8Array, about: SegmentAbout, absent: readonly number[] = [], content: SegmentContent | null = null) {
    this.bytes = bytes
    this.about = about
    this.absent = absent
    this.#content = content
  }

  get content(): SegmentContent {
    return (this.#content ??= readStoredBody(this.bytes, this.about, this.absent))
  }

  /** The content with at least these messages. Others may be null, because parsing a large body is slow. */
  contentOf(wanted: ReadonlySet<number>): SegmentContent {
    return readStoredBody(this.bytes, this.about, this.absent, wanted)
  }

  /** The parsed messages, if they are in memory. */
  get parsed(): SegmentContent | null {
    return this.#content
  }

  /** Drops the parsed messages. While messages wait, the garbage collector would copy their objects repeatedly, but it does not copy bytes. */
  forgetParsed(): void {
    this.#content = null
  }

  without(indexes: readonly number[]): SegmentBody {
    return new SegmentBody(this.bytes, this.about, [...this.absent, ...indexes])
  }
}

/**
 * `absent`: the indexes of duplicates, which are in the bytes but were not accepted. `wanted`: other messages may be null. Does not throw, because
 * one damaged body must not prevent other segments that are read with it from being sent, listed or purged.
 */
export function readStoredBody(
  bytes: Uint8Array,
  about: SegmentAbout,
  absent: readonly number[] = [],
  wanted?: ReadonlySet<number>,
): SegmentContent {
  const body = parsed(bytes, wanted)
  if (body === null) return { ...about, sentAt: null, context: null, integrations: null, items: [], isUnreadable: true }
  const items = [...body.batch]
  for (const index of absent) items[index] = null
  return {
    ...about,
    sentAt: typeof body.sentAt === 'string' ? body.sentAt : null,
    context: body.context ?? null,
    integrations: body.integrations ?? null,
    items,
  }
}

/** Parsing a body of 500 KB takes about 10 ms, half of it for garbage collection. Parsing a small body is faster than scanning it. */
const MIN_SCANNED_BYTES = 64 * 1024
const OPEN_OBJECT = 0x7b

function parsed(bytes: Uint8Array, wanted: ReadonlySet<number> | undefined): StoredBody | null {
  try {
    const isScanned = wanted !== undefined && bytes.length >= MIN_SCANNED_BYTES && bytes[0] === OPEN_OBJECT
    const body = (
      isScanned
        ? parseBatchItems(bytes, wanted)
        : JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
    ) as StoredBody | null
    return Array.isArray(body?.batch) ? body : null
  } catch {
    return null
  }
}
