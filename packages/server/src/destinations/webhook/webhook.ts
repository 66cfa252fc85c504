// The webhook: messages are sent to URLs in signed requests, as JSON or in the shape that the destination's `request` gives them.

import type { Destination } from '../../store/port/model.ts'
import type { DestinationKind } from '../kind.ts'
import { webhookRequest } from './request.ts'
import { changedSecrets, fromStored, hiddenSettings, type StoredWebhook, toStored, withoutSecrets, withSecrets } from './secrets.ts'
import { SHOWN_WEBHOOK_SETTINGS, WEBHOOK_SETTINGS } from './settings.ts'
import { batchProblem } from './shaping/request-settings.ts'
import { shaperOf } from './shaping/shaper.ts'
import { verdictsOf } from './verdict.ts'

export const WEBHOOK = {
  type: 'webhook',

  settings: WEBHOOK_SETTINGS,
  shownSettings: SHOWN_WEBHOOK_SETTINGS,
  problem({ urls = [], request, batch }, checkUrl, before) {
    for (const [index, url] of urls.entries()) {
      const problem = checkUrl(url)
      if (problem !== null) return { field: `urls[${index}]`, problem }
    }
    return batchProblem(request === undefined ? (before?.request ?? null) : request, batch ?? before?.batch ?? { size: 1 })
  },
  show,
  showHidden: (destination: Destination) => ({ ...show(destination), ...hiddenSettings(destination) }),

  secretSettings: ['sharedSecret', 'signingSecrets'],
  changedSecrets,
  secretHeaders: ({ headers, request }) => new Set(Object.keys({ ...headers, ...request?.headers }).map((name) => name.toLowerCase())),
  toStored,
  fromStored,
  withSecrets,
  withoutSecrets,

  targets: ({ urls }) => urls,
  shaper: shaperOf,
  request: webhookRequest,
  verdicts: ({ retry }: Destination) => verdictsOf(retry),
} as const satisfies DestinationKind<Destination, StoredWebhook>

function show({ urls, headers, sharedSecret, signingSecrets, request }: Destination) {
  return {
    urls: [...urls],
    headers: { ...headers },
    hasSharedSecret: sharedSecret !== null,
    hasSigningSecrets: signingSecrets.length > 0,
    signingSecretCount: signingSecrets.length,
    request: request === null ? null : { ...request, headers: { ...request.headers } },
  }
}
