// What became of one delivery, from the attempts at its shipment in their order.

import type { AttemptDoc } from '../encoding/attempt-doc.ts'
import type { FinalStateName } from '../store.ts'

export interface OriginState {
  attempts: number
  /** Undefined while it is pending. */
  final: { state: FinalStateName; reason: string | null; atMs: number } | undefined
}

export function originStateOf(rows: readonly { at: number; attempt: number; doc: string }[], index: number): OriginState {
  let attempts = 0
  for (const { at, attempt, doc } of rows) {
    const { r, f } = JSON.parse(doc) as AttemptDoc
    if (r.some(([, , , , , , indexes]) => indexes.includes(index))) attempts = attempt
    const final = f.find(([, , indexes]) => indexes.includes(index))
    if (final) return { attempts, final: { state: final[0], reason: final[1], atMs: at } }
  }
  return { attempts, final: undefined }
}
