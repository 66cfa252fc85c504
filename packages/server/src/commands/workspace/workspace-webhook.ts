// Converts the classic destination Webhooks to a webhook: its URLs, headers and shared secret. Receivers get the same requests from both.

import { isObject } from '@switchyard/protocol'
import type { PlannedDestination } from './planned-workspace.ts'
import type { ExportedDestination } from './workspace-export.ts'
import { isMasked } from './workspace-masks.ts'

const MAX_URLS = 5
const KNOWN: ReadonlySet<string> = new Set(['hooks', 'globalHook', 'sharedSecret'])

export function planWebhook(
  planned: PlannedDestination,
  { settings }: ExportedDestination,
  given: Readonly<Record<string, unknown>>,
): void {
  const fail = (reason: string): void => void Object.assign(planned, { outcome: 'not_supported', reason })
  const hooks = Array.isArray(settings['hooks']) ? settings['hooks'].filter(isObject) : []
  const urls = [...hooks.map(({ hook }) => hook), settings['globalHook']].filter((url) => typeof url === 'string' && url.trim() !== '')
  const distinct = [...new Set(urls.map((url) => String(url).trim()))]
  const headers = hooks.map(({ headers: list }) => headersOf(list))
  if (new Set(headers.map((each) => JSON.stringify(each))).size > 1)
    return fail('Its URLs have different headers. Create a webhook for each URL, with its headers.')
  if (distinct.length === 0 && given['urls'] === undefined) return fail('It has no URL.')
  if (distinct.length > MAX_URLS) return fail(`It has more than ${MAX_URLS} URLs. Create several webhooks.`)
  const values: Record<string, unknown> = {
    urls: distinct,
    headers: Object.fromEntries(headers[0] ?? []),
    ...(typeof settings['sharedSecret'] === 'string' && settings['sharedSecret'] !== '' ? { sharedSecret: settings['sharedSecret'] } : {}),
  }
  for (const key of Object.keys(settings))
    if (!KNOWN.has(key)) planned.notes.push(`Setting ${key} is left out: a webhook does not have it.`)
  for (const [key, value] of Object.entries(given)) {
    if (['urls', 'headers', 'sharedSecret'].includes(key)) values[key] = value
    else planned.notes.push(`Setting ${key} of --secrets is ignored: a webhook does not have it.`)
  }
  for (const [key, value] of Object.entries(values)) {
    if (isMasked(value)) planned.secrets.push(key)
    else if (value !== null) planned.settings[key] = value
  }
}

/** The form of the settings has an empty header by default. */
function headersOf(list: unknown): [name: string, value: string][] {
  const entries = Array.isArray(list) ? list.filter(isObject) : []
  return entries.flatMap(({ key, value }): [string, string][] =>
    typeof key === 'string' && key.trim() !== '' ? [[key.trim(), String(value ?? '')]] : [],
  )
}
