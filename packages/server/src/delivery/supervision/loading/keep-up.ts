// Asks a loader for a part of the upkeep of a warehouse.

import type { Destination } from '../../../store/store.ts'
import { type UpkeepAnswer, upkeepMessage } from '../../link/upkeep-message.ts'
import { sendOnce } from '../send-once.ts'
import type { Senders } from '../senders.ts'

export async function keepUp(
  senders: Pick<Senders, 'of'>,
  destination: Destination,
  cursor: string | null,
  options: { startedAtMs: number; onBug: (text: string) => void },
): Promise<UpkeepAnswer> {
  const message = upkeepMessage({ cursor, nowMs: options.startedAtMs })
  const sent = await sendOnce(senders, destination, message, { ...options, isBackground: true })
  const outcome = 'outcomes' in sent ? sent.outcomes[0] : undefined
  if (outcome?.verdict !== 'success') throw new Error(outcome?.error ?? 'The loader could not look after the tables.')
  return JSON.parse(outcome.responseStart ?? '') as UpkeepAnswer
}
