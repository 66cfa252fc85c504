// What the command line shows of a destination that only its kind has. Each kind answers; a kind without an entry shows what all have.

import type { JsonObject } from '@switchyard/protocol'
import { cell } from '../line/listing.ts'

type Fact = [label: string, value: unknown]

interface ShownKind {
  /** Where its messages go, for the list of destinations. */
  receiver: (destination: JsonObject) => unknown
  settings: (destination: JsonObject) => Fact[]
  /** What it makes of a message. */
  content: (destination: JsonObject) => Fact[]
}

const KINDS: Readonly<Record<string, ShownKind>> = {
  webhook: { receiver: ({ urls }) => urls, settings: webhookFacts, content: requestFacts },
  integration: { receiver: ({ integrationName }) => integrationName, settings: integrationFacts, content: () => [] },
}
const OTHER: ShownKind = { receiver: () => undefined, settings: () => [], content: () => [] }

export function shownKind({ type }: JsonObject): ShownKind {
  return KINDS[String(type)] ?? OTHER
}

function webhookFacts({ urls, headers, secrets, hasSharedSecret, signingSecretCount }: JsonObject): Fact[] {
  return [
    ['urls', urls],
    ['headers', Object.keys(headers as object)],
    ['secrets', Object.keys((secrets ?? {}) as object)],
    ['shared secret', hasSharedSecret],
    ['signing secrets', signingSecretCount],
  ]
}

function integrationFacts({ integration, integrationName, settings, secretSettings, subscriptions }: JsonObject): Fact[] {
  const shown = Object.entries(settings as JsonObject).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const listed = (subscriptions as { name: string; action: string; subscribe: string; enabled: boolean }[]).map(
    ({ name, action, subscribe, enabled }): [string, unknown] => [
      `subscription ${name}`,
      `${action} if ${subscribe}${enabled ? '' : ' (disabled)'}`,
    ],
  )
  return [
    ['secrets', []],
    ['integration', `${cell(integrationName)} (${cell(integration)})`],
    ['settings', shown.length === 0 ? undefined : shown],
    ['secret settings', secretSettings],
    ...listed,
  ]
}

/** What a classic webhook does not have is left out. */
function requestFacts({ request, transformation, auth, tls, version }: JsonObject): Fact[] {
  const { method, path, format } = (request ?? {}) as Record<string, unknown>
  const { code } = (transformation ?? {}) as { code?: string }
  return [
    ['request', request == null ? undefined : `${cell(method)} ${path === '' ? '' : `${cell(path)} `}as ${cell(format)}`],
    ['transformation', code === undefined ? undefined : codeText(code)],
    ['version', request == null && transformation == null ? undefined : version],
    ['authentication', (auth as JsonObject | null | undefined)?.['type']],
    ['client certificate', (tls as JsonObject | null | undefined)?.['subject'] ?? undefined],
  ]
}

function codeText(code: string): string {
  const lines = code.trimEnd().split('\n').length
  return lines === 1 ? '1 line of JavaScript' : `${lines} lines of JavaScript`
}
