// Hides what may be a credential in the settings and mappings of a destination, for viewers and the audit log. Definitions do not mark all of them:
// the URL of a Slack channel is an ordinary field of a mapping, and many API keys are plain strings. So the names and values decide.

import type { JsonObject } from '@switchyard/protocol'
import { HIDDEN, hiddenUrl } from './hidden-url.ts'

const CREDENTIAL = /key|secret|token|password|passphrase|credential|authorization|header|username/i
const URL_TEXT = /^[a-z][a-z0-9+.-]*:\/\//i
/** Options of directives that never contain a value of the user. */
const PLAIN_OPTIONS = new Set(['@path', 'operator', 'mode', 'direction'])

/** Whether a text contains nothing that could be a credential: only placeholders, signs between them, and the name of an authorization scheme. */
export function isTemplateOnly(text: string): boolean {
  const constant = text.replace(/^(?:Basic|Bearer|Token|ApiKey) /i, '').replaceAll(/\{\{[^{}]*\}\}/g, '')
  return text.includes('{{') && !/[\p{L}\p{N}]/u.test(constant)
}

/** `settings` are those that editors and admins see. */
export function hiddenSettings(settings: Readonly<JsonObject>): JsonObject {
  const hidden = (name: string, value: unknown): unknown => {
    if (typeof value === 'string' && CREDENTIAL.test(name)) return HIDDEN
    return typeof value === 'string' && URL_TEXT.test(value) ? hiddenUrl(value) : value
  }
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, hidden(name, value)]))
}

/** How texts of a mapping are replaced: `hidden` those that may be credentials, by their field, and `plain` all others. */
interface Texts {
  hidden: (field: string, text: string) => string
  plain: (text: string) => string
}

/** Hides constants of a mapping that are URLs, or that are in a field whose name says that it is a credential. */
export function hiddenMapping(mapping: Readonly<JsonObject>): JsonObject {
  return replacedTexts(mapping, { hidden: () => HIDDEN, plain: (text) => text })
}

/** The constants that `hiddenMapping` hides. Shorter ones are no credentials, and would occur in other texts by chance. */
export function hiddenTexts(mapping: Readonly<JsonObject>): string[] {
  const found: string[] = []
  replacedTexts(mapping, { hidden: (_field, text) => String(found.push(text)), plain: (text) => text })
  return found.filter((text) => text.length >= 8)
}

export function replacedTexts(mapping: Readonly<JsonObject>, texts: Texts): JsonObject {
  const replaced = (value: unknown, field: string, isCredential: boolean): unknown => {
    if (typeof value === 'string')
      return value !== '' && !isTemplateOnly(value) && (isCredential || value.includes('://'))
        ? texts.hidden(field, value)
        : texts.plain(value)
    if (Array.isArray(value)) return value.map((item) => replaced(item, field, isCredential))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => {
        if (PLAIN_OPTIONS.has(key) && typeof inner === 'string') return [key, texts.plain(inner)]
        if (key === '@arrayPath' && Array.isArray(inner) && typeof inner[0] === 'string')
          return [key, [texts.plain(inner[0]), ...inner.slice(1).map((item) => replaced(item, field, isCredential))]]
        return [key, replaced(inner, field, isCredential || (!key.startsWith('@') && CREDENTIAL.test(key)))]
      }),
    )
  }
  return Object.fromEntries(Object.entries(mapping).map(([name, value]) => [name, replaced(value, name, CREDENTIAL.test(name))]))
}
