// The webhook: messages are sent to URLs in signed requests, as JSON or in the shape that the destination's `request` gives them.

import type { Destination } from '../../store/port/model.ts'
import type { DestinationKind } from '../kind.ts'
import { authProblem, showAuth, withKeptSecrets } from './auth-settings.ts'
import { movedSecrets } from './moved-secrets.ts'
import { webhookRequest } from './request.ts'
import { mergedSecrets, secretsProblem, withHiddenSecrets } from './secret-settings.ts'
import { changedSecrets, fromStored, hiddenSettings, toStored, withoutSecrets, withSecrets } from './secrets.ts'
import { SHOWN_WEBHOOK_SETTINGS, WEBHOOK_SETTINGS } from './settings.ts'
import { batchProblem } from './shaping/request-settings.ts'
import { unknownSecret } from './shaping/secret-references.ts'
import { shaperOf } from './shaping/shaper.ts'
import { verdictsOf } from './verdict.ts'

export const WEBHOOK = {
  type: 'webhook',

  settings: WEBHOOK_SETTINGS,
  shownSettings: SHOWN_WEBHOOK_SETTINGS,
  givenProblem: () => null,
  completed(given, before) {
    const { integration: _, subscriptions: __, secrets, ...settings } = given
    return { ...withKeptSecrets(settings, before), ...(secrets && { secrets: mergedSecrets(before?.secrets ?? {}, secrets) }) }
  },
  problem(settings, { checkUrl }, before) {
    for (const [index, url] of (settings.urls ?? []).entries()) {
      const problem = checkUrl(url)
      if (problem !== null) return { field: `urls[${index}]`, problem }
    }
    const all = { ...before, ...settings }
    const { request = null, batch = { size: 1 }, secrets = {} } = all
    return (
      batchProblem(request, batch) ??
      secretsProblem(secrets) ??
      // A destination that cannot read a secret can still be paused or renamed.
      (settings.request === undefined && settings.secrets === undefined ? null : unknownSecret(request, Object.keys(secrets))) ??
      authProblem(settings, all, checkUrl, before)
    )
  },
  movedSecrets,
  show,
  showHidden: (destination: Destination) => show({ ...destination, ...hiddenSettings(destination) }),

  secretSettings: ['sharedSecret', 'signingSecrets', 'auth', 'tls', 'secrets'],
  changedSecrets,
  secretHeaders: ({ headers, request, auth }: Destination) => {
    const names = Object.keys({ ...headers, ...request?.headers })
    return new Set([...names, ...(auth === null ? [] : ['authorization'])].map((name) => name.toLowerCase()))
  },
  toStored,
  fromStored,
  withSecrets,
  withoutSecrets,

  targets: ({ urls }: Destination) => urls,
  steps: () => null,
  shaper: shaperOf,
  request: webhookRequest,
  verdicts: ({ retry }: Destination) => verdictsOf(retry),
} as const satisfies DestinationKind

function show(destination: Destination) {
  const { urls, headers, sharedSecret, signingSecrets, request, transformation } = destination
  return {
    urls: [...urls],
    headers: { ...headers },
    hasSharedSecret: sharedSecret !== null,
    hasSigningSecrets: signingSecrets.length > 0,
    signingSecretCount: signingSecrets.length,
    request: request === null ? null : { ...request, headers: { ...request.headers } },
    transformation: transformation === null ? null : { ...transformation },
    secrets: withHiddenSecrets(destination).secrets,
    ...showAuth(destination),
  }
}
