// The setting `secrets` of a webhook: credentials that the templates and the mapping of `request` read as {{secrets.name}}. They are write-only:
// responses contain their names. No error message here may quote a value.

import { nullable, record, string, withDefault } from '../../api/schema.ts'
import type { WebhookDestination } from '../../model/configuration.ts'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import type { SettingsProblem } from '../port/kind.ts'

const MAX_SECRETS = 50
const MAX_SECRET_LENGTH = 8_192

/** Without dots and brackets, which separate the parts of a path. */
export const SECRET_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/

function nameProblem(name: string): string | null {
  return SECRET_NAME.test(name)
    ? null
    : 'must have a name of 1 to 64 letters, digits, underscores and hyphens that does not begin with a digit or a hyphen'
}

function valueProblem(value: string): string | null {
  return value === HIDDEN ? 'is the placeholder "(hidden)"; send the real value, or leave the secret out to keep the stored one' : null
}

export const SECRETS_SETTING = withDefault(
  record(nullable(string({ min: 1, max: MAX_SECRET_LENGTH, writeOnly: true, check: valueProblem })), {
    max: MAX_SECRETS,
    name: nameProblem,
    description:
      'Credentials for the path, the headers and the body of `request`, by name: `{{secrets.name}}` in a template, `$.secrets.name` in a mapping. Encrypted in the store and never shown. An update changes only the secrets that it contains, and null removes one.',
  }),
  {},
)

export const SHOWN_SECRETS = record(string(), { description: 'The names of the secrets. Each value is replaced by (hidden).' })

export function mergedSecrets(
  before: WebhookDestination['secrets'],
  given: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const merged = new Map(Object.entries(before))
  for (const [name, value] of Object.entries(given)) {
    if (value === null) merged.delete(name)
    else merged.set(name, value)
  }
  return Object.fromEntries(merged)
}

/** Checked again after an update was merged with the stored secrets. */
export function secretsProblem(secrets: WebhookDestination['secrets']): SettingsProblem | null {
  return Object.keys(secrets).length > MAX_SECRETS ? { field: 'secrets', problem: `must have at most ${MAX_SECRETS} entries` } : null
}

/** The destination with placeholders for its secrets. Requests that are only shown are built with it. */
export function withHiddenSecrets<T extends Pick<WebhookDestination, 'secrets'>>(destination: T): T {
  const names = Object.keys(destination.secrets)
  return names.length === 0 ? destination : { ...destination, secrets: Object.fromEntries(names.map((name) => [name, HIDDEN])) }
}

/** Whether its requests may contain secrets, so that a request that is shown differs from the one that is sent. */
export function usesSecrets({ request, secrets }: Pick<WebhookDestination, 'request' | 'secrets'>): boolean {
  return request !== null && Object.keys(secrets).length > 0
}

/** Every form in which a request can contain a secret: as it is, changed by @case, in a path, in JSON, in JSON within JSON and in a form; and in Base64. */
export function writtenForms(secret: string): string[] {
  const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)
  const forms = [secret, secret.toUpperCase(), secret.toLowerCase()].flatMap((text) => {
    const inForm = new URLSearchParams({ x: text }).toString().slice(2)
    return [text, encodeURIComponent(text), inJson(text), inJson(inJson(text)), inForm]
  })
  return [...new Set([...forms, Buffer.from(secret).toString('base64')])]
}
