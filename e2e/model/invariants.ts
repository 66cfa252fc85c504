// What must be true in every state that can be reached: the invariants of ARCHITECTURE.md that nodes could break together.

import type { Message, State } from './state.ts'

const ofEach =
  (isTrue: (message: Message) => boolean) =>
  ({ messages }: State): boolean =>
    messages.every(isTrue)

export const INVARIANTS = {
  'acknowledged means durable': ofEach(({ acknowledged, owed }) => !acknowledged || owed > 0),
  'owed = delivered + pending + failed': ofEach(({ owed, delivered, rows, failed }) => owed === delivered + rows.length + failed),
  'stored once, settled once': ofEach(({ owed, delivered, failed }) => owed <= 1 && delivered + failed <= 1),
  'what is recorded as delivered was received': ofEach(({ delivered, received }) => delivered <= received),
  'only the current claim settles': ofEach(({ settledByOldClaim }) => !settledByOldClaim),
  'received once, and once more for each fault that hit it in flight': ofEach(({ received, hits }) => received <= 1 + hits),
} as const

/** Everything is stored and settled. A sender without an acknowledgement gets one by sending the message again. */
export function isEnd({ messages }: State): boolean {
  return messages.every(({ owed, rows }) => owed > 0 && rows.length === 0)
}
