// The webhook: messages are sent to URLs in signed requests, as JSON or in the shape that the destination's `request` gives them.

import type { JsonObject } from '@switchyard/protocol'
import type { WebhookDestination } from '../../model/configuration.ts'
import type { Progress } from '../../model/messages.ts'
import { oncePerObject } from '../../model/once-per-object.ts'
import { outboundMessage } from '../../outbound/outbound-message.ts'
import { hiddenUrl } from '../../secrets/hidden-url.ts'
import type { DestinationKind } from '../port/kind.ts'
import { authProblem, showAuth, withKeptSecrets } from './auth-settings.ts'
import { EMAIL_CONFIRMATION_MS, emailRequest, sendsEmail } from './email/email-request.ts'
import { emailProblem, MAX_EMAILS_IN_FLIGHT } from './email/email-settings.ts'
import { WEBHOOK_FACTS } from './facts.ts'
import { movedSecrets, originsOf } from './moved-secrets.ts'
import { webhookRequest } from './request.ts'
import { mergedSecrets, secretsProblem, usesSecrets, withHiddenSecrets } from './secret-settings.ts'
import {
  changedSecrets,
  fromStored,
  hiddenRequest,
  hiddenSettings,
  type StoredWebhook,
  toStored,
  upgraded,
  withoutSecrets,
  withSecrets,
} from './secrets.ts'
import { type GivenWebhook, MAX_WEBHOOK_TIMEOUT_MS, SHOWN_WEBHOOK_SETTINGS, WEBHOOK_SETTINGS } from './settings.ts'
import { batchProblem, SHOWN_REQUEST } from './shaping/request-settings.ts'
import { unknownSecret } from './shaping/secret-references.ts'
import { shaperOf } from './shaping/shaper.ts'
import { SHOWN_TRANSFORMATION } from './transformation-settings.ts'
import { verdictsOf } from './verdict.ts'

/** The name in `integrations` that selects all webhooks. Each webhook can also be selected by its own name. */
const SHARED_NAMES = ['Webhooks']

export const WEBHOOK: DestinationKind<WebhookDestination, GivenWebhook, StoredWebhook> = {
  type: 'webhook',
  noun: { one: 'a webhook', many: 'webhooks' },

  settings: WEBHOOK_SETTINGS,
  shownSettings: SHOWN_WEBHOOK_SETTINGS,
  maxTimeoutMs: MAX_WEBHOOK_TIMEOUT_MS,
  slug: () => null,
  givenProblem: () => null,
  completed(given, before) {
    const { secrets, ...settings } = given
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
      emailProblem(all) ??
      batchProblem(request, batch) ??
      secretsProblem(secrets) ??
      // A destination that cannot read a secret can still be paused or renamed.
      (settings.request === undefined && settings.secrets === undefined ? null : unknownSecret(request, Object.keys(secrets))) ??
      authProblem(settings, all, checkUrl, before)
    )
  },
  movedSecrets,
  show,
  showHidden: (destination) => show({ ...destination, ...hiddenSettings(destination) }),
  content: {
    first: { request: null, transformation: null },
    shown: { request: SHOWN_REQUEST, transformation: SHOWN_TRANSFORMATION },
  },
  origins: ({ urls }) => originsOf(urls),
  sameReceiver: (one, other) => (one.urls.some((url) => other.urls.includes(url)) ? 'the same URL' : null),
  setupProblem: () => null,
  misfit: () => null,
  warnings: () => [],
  isInactive: () => false,
  acceptsDeadLetters: true,

  secretSettings: ['sharedSecret', 'signingSecrets', 'auth', 'tls', 'secrets'],
  changedSecrets,
  secretHeaders({ headers, request, auth }, which) {
    const names = Object.keys({ ...headers, ...(which === 'all' ? request?.headers : {}) })
    return new Set([...names, ...(auth === null ? [] : ['authorization'])].map((name) => name.toLowerCase()))
  },
  hidden: (destination) => {
    const { request, urls } = destination
    return request === null ? destination : { ...destination, request: hiddenRequest(request, urls) }
  },
  mappings: ({ request }) => (request?.body == null ? [] : [{ body: request.body as JsonObject }]),
  toStored,
  fromStored,
  withSecrets,
  withoutSecrets,
  upgraded,

  filter: () => null,
  deletesUsers: () => true,
  sharedNames: () => SHARED_NAMES,

  mostInFlight: (destination) => (sendsEmail(destination) ? MAX_EMAILS_IN_FLIGHT : Number.POSITIVE_INFINITY),
  extraMs: (destination) => (sendsEmail(destination) ? EMAIL_CONFIRMATION_MS : 0),
  place: 'thread',
  message: outboundMessage,
  targets: ({ urls }) => urls,
  transformation: ({ transformation = null }) => transformation,
  targetsLeft,
  stepsDone: () => null,
  progressAfter: (_before, retried) => retried,
  keepsBatches: true,
  steps: () => null,
  carrier: null,
  shaper: shaperOf,
  requests: {
    build: (destination, messages, batch, about) =>
      sendsEmail(destination) ? emailRequest(messages, about) : webhookRequest(destination, messages, batch, about),
    credentials: (destination) => destination,
    masked: withHiddenSecrets,
    hidesSecrets: usesSecrets,
  },
  hasPassed: (attempts) => attempts.some(({ reason }) => reason === null),
  verdicts: ({ retry }) => verdictsOf(retry),

  facts: WEBHOOK_FACTS,
}

const allOf = oncePerObject((urls: readonly string[]): readonly number[] => urls.map((_, at) => at))

/**
 * The progress of a webhook is the URLs that are still to be tried. If they were all replaced, every URL is tried. URLs are compared without query
 * values, which the store does not keep.
 */
function targetsLeft({ urls }: WebhookDestination, progress: Progress): readonly number[] {
  const all = allOf(urls)
  if (progress === null) return all
  const pending = new Set(progress.map(hiddenUrl))
  const left = all.filter((at) => pending.has(hiddenUrl(urls[at] as string)))
  return left.length > 0 ? left : all
}

function show(destination: WebhookDestination) {
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
