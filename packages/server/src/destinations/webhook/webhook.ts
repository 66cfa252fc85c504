// The webhook: messages are sent as signed JSON in POST requests to URLs.

import type { Destination } from '../../store/port/model.ts'
import type { DestinationKind, Shaper } from '../kind.ts'
import { webhookRequest } from './request.ts'
import { changedSecrets, fromStored, hiddenSettings, type StoredWebhook, toStored, withoutSecrets, withSecrets } from './secrets.ts'
import { SHOWN_WEBHOOK_SETTINGS, WEBHOOK_SETTINGS } from './settings.ts'
import { verdictsOf } from './verdict.ts'

export const WEBHOOK = {
  type: 'webhook',

  settings: WEBHOOK_SETTINGS,
  shownSettings: SHOWN_WEBHOOK_SETTINGS,
  problem({ urls = [] }, checkUrl) {
    for (const [index, url] of urls.entries()) {
      const problem = checkUrl(url)
      if (problem !== null) return { field: `urls[${index}]`, problem }
    }
    return null
  },
  show,
  showHidden: (destination: Destination) => ({ ...show(destination), ...hiddenSettings(destination) }),

  secretSettings: ['sharedSecret', 'signingSecrets'],
  changedSecrets,
  secretHeaders: ({ headers }) => new Set(Object.keys(headers).map((name) => name.toLowerCase())),
  toStored,
  fromStored,
  withSecrets,
  withoutSecrets,

  targets: ({ urls }) => urls,
  // Shaping by `request` is not built yet.
  shaper: (_destination: Destination): Shaper | null => null,
  request: webhookRequest,
  verdicts: ({ retry }: Destination) => verdictsOf(retry),
} as const satisfies DestinationKind<Destination, StoredWebhook>

function show({ urls, headers, sharedSecret, signingSecrets }: Destination) {
  return {
    urls: [...urls],
    headers: { ...headers },
    hasSharedSecret: sharedSecret !== null,
    hasSigningSecrets: signingSecrets.length > 0,
    signingSecretCount: signingSecrets.length,
  }
}
