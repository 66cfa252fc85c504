// Hides what may be a credential in the settings and mappings of an integration, for viewers and the audit log. Definitions do not mark all of them:
// the URL of a Slack channel is an ordinary field of a mapping, and many API keys are plain strings. So names and values decide here.

import type { JsonObject } from '@switchyard/protocol'
import { HIDDEN, hiddenUrl } from '../../secrets/hidden-url.ts'

const CREDENTIAL = /key|secret|token|password|passphrase|credential|auth|header|username/i
const URL_TEXT = /^[a-z][a-z0-9+.-]*:\/\//i
/** Options of directives that are never a value of the user. */
const PLAIN_OPTIONS = new Set(['@path', 'operator', 'mode', 'direction'])

/** `settings` are those that admins see. */
export function hiddenSettings(settings: Readonly<JsonObject>): JsonObject {
  const hidden = (name: string, value: unknown): unknown => {
    if (typeof value === 'string' && CREDENTIAL.test(name)) return HIDDEN
    return typeof value === 'string' && URL_TEXT.test(value) ? hiddenUrl(value) : value
  }
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, hidden(name, value)]))
}

/** Constants of a mapping that are URLs, or that are in a field whose name says that it is a credential. */
export function hiddenMapping(mapping: Readonly<JsonObject>): JsonObject {
  return Object.fromEntries(Object.entries(mapping).map(([name, value]) => [name, hiddenConstants(value, CREDENTIAL.test(name))]))
}

function hiddenConstants(value: unknown, isCredential: boolean): unknown {
  if (typeof value === 'string') return value !== '' && (isCredential || value.includes('://')) ? HIDDEN : value
  if (Array.isArray(value)) return value.map((item) => hiddenConstants(item, isCredential))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (PLAIN_OPTIONS.has(key)) return [key, inner]
      if (key === '@arrayPath' && Array.isArray(inner))
        return [key, [inner[0], ...inner.slice(1).map((item) => hiddenConstants(item, isCredential))]]
      return [key, hiddenConstants(inner, isCredential || (!key.startsWith('@') && CREDENTIAL.test(key)))]
    }),
  )
}
