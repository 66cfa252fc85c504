// The stored form of violations: one document for each plan, source, rule, path and kind of violation. They hold names, words and counts, and no
// values of messages. Counts of several nodes are merged by addition. Pure functions.

import { createHash } from 'node:crypto'
import type { JsonObject, Violation } from '@switchyard/protocol'
import { addHours, type Counted } from '../event-catalog/event-documents.ts'

/** The kind of the documents. */
export const VIOLATION = 'violation'
/** Further ones are counted together, because names of properties and events come from senders. */
export const MAX_VIOLATIONS_PER_SOURCE = 1_000
export const MESSAGES_KEPT = 10

/** What a node counted of one violation since it last wrote to the store. */
export interface ViolationDelta {
  planId: string
  sourceId: string
  /** Null for violations that are counted together. */
  violation: Violation | null
  firstMs: number
  lastMs: number
  /** The number of messages, by hours since 1970. */
  hours: Map<number, number>
  /** The messageIds of the newest messages, newest first. */
  messageIds: string[]
}

export interface ViolationCounts extends JsonObject, Counted {
  violation: Violation | null
  messageIds: readonly string[]
  /** Only in the document of other violations: how many of the source have their own document. */
  documents?: number
}

/** All keys of a plan begin with this. */
export function violationsOfPlan(planId: string, sourceId?: string): string {
  return sourceId === undefined ? `${planId}.` : `${planId}.${sourceId}.`
}

/** The name of the key is hashed, because it may be long and contain anything. Elements of an array count as one. */
export function violationKey(planId: string, sourceId: string, violation: Violation | null): string {
  const prefix = violationsOfPlan(planId, sourceId)
  if (violation === null) return `${prefix}other`
  const { rule, code, path } = violation
  return prefix + createHash('sha256').update(`${rule}\0${code}\0${path}`, 'utf16le').digest('base64url').slice(0, 22)
}

export function partsOfKey(key: string): { planId: string; sourceId: string } {
  const [planId = '', sourceId = ''] = key.split('.')
  return { planId, sourceId }
}

/** The violation as it is counted: without the index of an element, so that a list of products has one violation and not one for each product. */
export function countedViolation(violation: Violation): Violation {
  return { ...violation, path: violation.path.replaceAll(/\.\d+(?=\.|$)/g, '.*') }
}

export function addToViolation(stored: ViolationCounts | undefined, delta: ViolationDelta): ViolationCounts {
  const messageIds = [...delta.messageIds, ...(stored?.messageIds ?? [])].slice(0, MESSAGES_KEPT)
  return { ...stored, violation: delta.violation, ...addHours(stored, delta), messageIds }
}
