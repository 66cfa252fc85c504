// Whether a warehouse that is not saved yet can be written, and which tables it would have.

import type { Destination } from '../../store/store.ts'
import { withTimeout } from '../../timing/with-timeout.ts'
import { checkMessage, type WarehouseCheck, type WarehouseCheckRequest } from '../link/warehouse-check.ts'
import { sendOnce } from '../supervision/send-once.ts'
import type { Senders } from '../supervision/senders.ts'
import { PreviewTurns } from './preview-turns.ts'

/** With the start of a loader. A server that does not answer is given up by the engine before. */
const LIMIT_MS = 45_000

const turns = new PreviewTurns()
let lastNumber = 0

/** Rejects with TooManyPreviews. */
export async function checkWarehouse(
  senders: Pick<Senders, 'of'>,
  destination: Destination,
  request: WarehouseCheckRequest,
  options: { startedAtMs: number; onBug: (text: string) => void },
  limitMs = LIMIT_MS,
): Promise<WarehouseCheck> {
  const asked = { ...destination, id: `check-${++lastNumber}`, timeoutMs: Math.min(destination.timeoutMs, limitMs) }
  const [found] = await turns.run(
    [request],
    limitMs,
    (each, leftMs) => withTimeout(leftMs, checkOnce(senders, asked, each, options), null),
    () => senders.of(asked).forget(asked.id),
  )
  return found ?? failed('timed_out', `The test did not end within ${limitMs / 1_000} s.`)
}

async function checkOnce(
  senders: Pick<Senders, 'of'>,
  destination: Destination,
  request: WarehouseCheckRequest,
  options: { startedAtMs: number; onBug: (text: string) => void },
): Promise<WarehouseCheck> {
  const sent = await sendOnce(senders, destination, checkMessage(request), options)
  const outcome = 'outcomes' in sent ? sent.outcomes[0] : undefined
  if (outcome?.verdict === 'success') return JSON.parse(outcome.responseStart ?? '') as WarehouseCheck
  return failed((outcome?.reason ?? 'warehouse_failed').replace(/^warehouse_/, ''), outcome?.error ?? 'The loader could not run the test.')
}

function failed(code: string, message: string): WarehouseCheck {
  return { problem: { code, message }, steps: [], version: null, tables: [] }
}
