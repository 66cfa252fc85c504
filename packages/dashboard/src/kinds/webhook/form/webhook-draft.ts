// The settings of a webhook while they are edited. Secrets are write-only: a stored secret can be kept, replaced or removed, but not read. Pure.

import { FIELDS, TIMEOUT_MS } from '../../../api/rules.ts'
import * as common from '../../../destination/form/draft.ts'
import type { DestinationOf } from '../../../destination/kind.ts'
import {
  type AuthDraft,
  authBodyOf,
  authDraftOf,
  authProblems,
  type TlsDraft,
  tlsBodyOf,
  tlsDraftOf,
  tlsProblems,
  withoutStored,
} from './auth-draft.ts'
import { AGAIN, isMovedFrom, type NamedSecret, originsOf, secretProblems, secretsBodyOf, secretsDraftOf } from './secrets-draft.ts'
import {
  type HeaderDraft,
  headerDrafts,
  headerProblems,
  headersOf,
  headersProblem,
  sharedSecretProblem,
  signingSecretProblems,
  urlProblems,
} from './validation.ts'

export type Webhook = DestinationOf<'webhook'>

export type SecretChange = { kind: 'keep' } | { kind: 'remove' } | { kind: 'set'; values: string[] }

export interface WebhookDraft extends common.Draft {
  urls: string[]
  headers: HeaderDraft[]
  sharedSecret: SecretChange
  signingSecrets: SecretChange
  auth: AuthDraft
  tls: TlsDraft
  secrets: NamedSecret[]
  /** What is stored and cannot be read. `origins`: the servers that the secrets were given for; null for a new destination. */
  stored: { origins: readonly string[] | null; hasSharedSecret: boolean; signingSecretCount: number }
}

const KEEP: SecretChange = { kind: 'keep' }

export function newWebhook(): WebhookDraft {
  return {
    ...common.newDraft(TIMEOUT_MS.webhook.default),
    urls: [''],
    headers: [],
    sharedSecret: KEEP,
    signingSecrets: KEEP,
    auth: authDraftOf(null),
    tls: tlsDraftOf(null),
    secrets: [],
    stored: { origins: null, hasSharedSecret: false, signingSecretCount: 0 },
  }
}

export function webhookDraftOf(saved: Webhook): WebhookDraft {
  const { urls, headers, auth, tls, secrets, hasSharedSecret, signingSecretCount } = saved
  return {
    ...common.draftOf(saved),
    urls: [...urls],
    headers: headerDrafts(headers),
    sharedSecret: KEEP,
    signingSecrets: KEEP,
    auth: authDraftOf(auth),
    tls: tlsDraftOf(tls),
    secrets: secretsDraftOf(secrets),
    stored: { origins: originsOf(urls), hasSharedSecret, signingSecretCount },
  }
}

/** Whether the URLs lead to a server that stored secrets were not given for. The service wants them again then. */
export function isMoved({ stored: { origins }, urls }: WebhookDraft): boolean {
  return isMovedFrom(origins, urls)
}

function authOf(draft: WebhookDraft): AuthDraft {
  return isMoved(draft) ? withoutStored(draft.auth) : draft.auth
}

export function webhookProblems(draft: WebhookDraft): common.Problems {
  const { auth, urls, headers, sharedSecret, signingSecrets } = draft
  const { min, max } = FIELDS.urls
  const needsPassword = isMoved(draft) && auth.type === 'basic' && auth.stored.hasPassword && auth.secret === ''
  const own: common.Noted[] = [
    ...authProblems(authOf(draft)),
    ...tlsProblems(draft.tls),
    ['auth.password', needsPassword ? AGAIN : null],
    ...secretProblems(draft.secrets, isMoved(draft)),
    ['urls', urls.length < min || urls.length > max ? `Enter ${min} to ${max} URLs.` : null],
    ...urlProblems(urls).map((problem, at): common.Noted => [`urls[${at}]`, problem]),
    ...headerProblems(headers),
    ['headers', headersProblem(headers)],
    ['sharedSecret', sharedSecret.kind === 'set' ? sharedSecretProblem(sharedSecret.values[0] ?? '') : null],
    ...(signingSecrets.kind === 'set' ? signingSecretProblems(signingSecrets.values) : []).map(
      (problem, at): common.Noted => [`signingSecrets[${at}]`, problem],
    ),
  ]
  return common.problemsOf(draft, own, TIMEOUT_MS.webhook)
}

/** The body that creates the destination. The draft must have no problems. */
export function createBodyOf(draft: WebhookDraft): common.NewDestination {
  const { urls, headers, auth, tls } = webhookSettingsOf(draft)
  const secrets = secretsBodyOf([], draft.secrets)
  // A destination that uses none of these is the classic webhook, and says nothing about them.
  const used = common.withoutNull({ auth, tls, secrets: Object.keys(secrets).length === 0 ? null : secrets })
  return { ...common.newSettingsOf(draft), urls, headers, ...used, ...secretChanges(draft, { isNew: true }) }
}

/** The fields that differ from the saved ones; null if none do. The draft must have no problems. */
export function patchBodyOf(saved: Webhook, draft: WebhookDraft): common.DestinationChange | null {
  const base = webhookDraftOf(saved)
  const secrets = secretsBodyOf(base.secrets, draft.secrets)
  return common.changeOf({
    ...common.changedFields(common.settingsOf(base), common.settingsOf(draft)),
    ...common.changedFields(webhookSettingsOf(base), webhookSettingsOf(draft)),
    ...(Object.keys(secrets).length > 0 ? { secrets } : {}),
    ...(isMoved(draft) ? sentAgain(saved, draft) : {}),
    ...secretChanges(draft, { isNew: false }),
  })
}

function secretChanges(
  { sharedSecret, signingSecrets }: WebhookDraft,
  { isNew }: { isNew: boolean },
): Pick<common.DestinationChange, 'sharedSecret' | 'signingSecrets'> {
  const isSent = ({ kind }: SecretChange): boolean => kind === 'set' || (kind === 'remove' && !isNew)
  return {
    ...(isSent(sharedSecret) ? { sharedSecret: sharedSecret.kind === 'set' ? (sharedSecret.values[0] ?? null) : null } : {}),
    ...(isSent(signingSecrets) ? { signingSecrets: signingSecrets.kind === 'set' ? signingSecrets.values : [] } : {}),
  }
}

/** What the service wants again for another server. Header values and the request are shown in the dashboard, so they need not be typed again. */
function sentAgain({ request }: Webhook, draft: WebhookDraft): common.DestinationChange {
  const { headers, auth } = webhookSettingsOf(draft)
  return { ...(Object.keys(headers).length === 0 ? {} : { headers }), ...common.withoutNull({ auth, request }) }
}

function webhookSettingsOf(draft: WebhookDraft) {
  return { urls: draft.urls, headers: headersOf(draft.headers), auth: authBodyOf(authOf(draft)), tls: tlsBodyOf(draft.tls) }
}

const SHOWN_FIELDS =
  /^(urls(\[\d+\])?|signingSecrets(\[\d+\])?|sharedSecret|headers|secrets|auth(\.(username|password|token|tokenUrl|clientId|clientSecret|scope|audience))?|tls(\.(certificate|privateKey|ca))?)$/

/** The form field at which to show an error of the API; null if no field shows it. */
export function webhookFieldOf(field: string, draft: WebhookDraft): string | null {
  const [, list, entry] = /^(headers|secrets)\.(.+)$/s.exec(field) ?? []
  if (list !== undefined) {
    const at = draft[list as 'headers' | 'secrets'].findIndex(({ name }) => name === entry)
    return at === -1 ? list : `${list}[${at}].value`
  }
  return SHOWN_FIELDS.test(field) ? field : common.formFieldOf(field)
}

/** `whsec_` followed by the bytes in base64. */
export function signingSecretOf(bytes: Uint8Array): string {
  return `whsec_${btoa(String.fromCharCode(...bytes))}`
}
