// What the command line says about a webhook, as the API returned it.

import type { JsonObject } from '@switchyard/protocol'
import { counted } from '../../api/counted.ts'
import type { DestinationKind, Fact } from '../port/kind.ts'

export const WEBHOOK_FACTS: DestinationKind['facts'] = {
  receiver: ({ urls }) => urls,
  settings: ({ urls, headers, secrets, hasSharedSecret, signingSecretCount }) => [
    ['urls', urls],
    ['headers', Object.keys(headers as object)],
    ['secrets', Object.keys((secrets ?? {}) as object)],
    ['shared secret', hasSharedSecret],
    ['signing secrets', signingSecretCount],
  ],
  content: contentFacts,
}

/** What a classic webhook does not have is left out. */
function contentFacts(shown: JsonObject): readonly Fact[] {
  const { request, transformation, auth, tls, version } = shown as {
    request?: { method: string; path: string; format: string } | null
    transformation?: { code: string } | null
    auth?: { type: string } | null
    tls?: { subject?: string | null } | null
    version: number
  }
  return [
    ['request', request == null ? undefined : `${request.method} ${request.path === '' ? '' : `${request.path} `}as ${request.format}`],
    ['transformation', transformation == null ? undefined : `${counted(linesOf(transformation.code), 'line')} of JavaScript`],
    ['version', request == null && transformation == null ? undefined : version],
    ['authentication', auth?.type],
    ['client certificate', tls?.subject ?? undefined],
  ]
}

function linesOf(code: string): number {
  return code.trimEnd().split('\n').length
}
