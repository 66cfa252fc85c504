// What a segment's bytes mean. They are the request's own body where that holds just what was accepted, so that the usual
// way in writes no JSON at all, and an object of the same shape where it does not. Reading is shared by
// all who need a stored message; nothing here judges one, for that was done at the door.

import type { JsonObject } from '@switchyard/protocol'
import type { SegmentContent } from '../store.ts'

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

/**
 * `absent` are the indexes of duplicates, which are in the bytes but do not count. Does not throw, because one damaged body must not keep
 * others that are read with it from being sent, listed or purged.
 */
export function readStoredBody(
  bytes: Uint8Array,
  about: Pick<SegmentContent, 'sourceId' | 'receivedAtMs' | 'ip' | 'browser' | 'trace'>,
  absent: readonly number[] = [],
): SegmentContent {
  const body = parsed(bytes)
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

function parsed(bytes: Uint8Array): StoredBody | null {
  try {
    const body = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')) as StoredBody | null
    return Array.isArray(body?.batch) ? body : null
  } catch {
    return null
  }
}
