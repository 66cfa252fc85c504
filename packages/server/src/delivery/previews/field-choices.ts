// Which values a field of an integration can have, as its tool answers. It runs in the host of previews, so it delays no delivery.

import type { Destination } from '../../store/store.ts'
import { withTimeout } from '../../timing/with-timeout.ts'
import { type FieldLookup, lookupMessage } from '../link/field-lookup.ts'
import { sendOnce } from '../supervision/send-once.ts'
import type { Senders } from '../supervision/senders.ts'
import { PreviewTurns } from './preview-turns.ts'

export interface FieldChoices {
  choices: readonly FieldChoice[]
  nextPage: string | null
  /** Why there are none: the reason of an attempt, and a sentence. Null if the tool answered. */
  error: { code: string; message: string } | null
}

export interface FieldChoice {
  value: string | number | boolean
  label: string
  description?: string
}

/** With the start of a host and the loading of an integration. A host itself gives up after 10 s. */
const LIMIT_MS = 20_000
const MAX_CHOICES = 1_000

const turns = new PreviewTurns()
let lastNumber = 0

/** `isStored`: whether the destination is a stored one, as it is stored. Rejects with TooManyPreviews. */
export async function fieldChoices(
  senders: Pick<Senders, 'of'>,
  destination: Destination,
  lookup: FieldLookup & { isStored: boolean },
  options: { startedAtMs: number; onBug: (text: string) => void },
  limitMs = LIMIT_MS,
): Promise<FieldChoices> {
  // Tokens that a stored destination gets belong to it, so it keeps its id; a host then knows it until it is deleted.
  const asked = lookup.isStored ? destination : { ...destination, id: `lookup-${++lastNumber}` }
  const [found] = await turns.run(
    [lookup],
    limitMs,
    (each, leftMs) => withTimeout(leftMs, lookUp(senders, asked, each, options), null),
    () => (lookup.isStored ? undefined : senders.of(asked).forget(asked.id)),
  )
  return found ?? failed('timeout', 'The tool did not answer in time.')
}

async function lookUp(
  senders: Pick<Senders, 'of'>,
  destination: Destination,
  lookup: FieldLookup & { isStored: boolean },
  options: { startedAtMs: number; onBug: (text: string) => void },
): Promise<FieldChoices> {
  const sent = await sendOnce(senders, destination, lookupMessage(lookup), { ...options, isPreview: true })
  const outcome = 'outcomes' in sent ? sent.outcomes[0] : undefined
  if (outcome?.verdict === 'success') return parsed(outcome.responseStart ?? '')
  const { reason, error, status = null, ran } = outcome ?? {}
  const because = error ?? ran?.requests[0]?.outcome.error ?? 'The integration could not be run.'
  return failed(reason ?? 'integration_failed', status === null ? because : `The tool answered ${status}: ${because}`)
}

function failed(code: string, message: string): FieldChoices {
  return { choices: [], nextPage: null, error: { code, message } }
}

/** Code in a host can answer anything. */
function parsed(text: string): FieldChoices {
  try {
    const { choices, nextPage } = JSON.parse(text) as { choices: unknown[]; nextPage: unknown }
    const checked = choices.slice(0, MAX_CHOICES).flatMap((choice): FieldChoice[] => {
      const { value, label, description } = choice as Record<string, unknown>
      if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return []
      const more = typeof description === 'string' ? { description } : {}
      return [{ value, label: typeof label === 'string' ? label : String(value), ...more }]
    })
    return { choices: checked, nextPage: typeof nextPage === 'string' ? nextPage : null, error: null }
  } catch {
    return failed('integration_failed', 'The integration returned an invalid answer.')
  }
}
