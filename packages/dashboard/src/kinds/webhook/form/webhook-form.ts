// The form for the settings of a webhook.

import type { EditForm } from '../../../destination/form/field-state.ts'
import { AuthFields, authNote, TlsFields, tlsNote } from './auth-fields.tsx'
import { SecretsFields, SigningFields, secretsNote, signingNote } from './secret-field.tsx'
import { HeaderFields, UrlFields } from './url-and-header-fields.tsx'
import { patchBodyOf, type Webhook, type WebhookDraft, webhookDraftOf, webhookFieldOf, webhookProblems } from './webhook-draft.ts'

export const WEBHOOK_FORM: EditForm<Webhook, WebhookDraft> = {
  draftOf: webhookDraftOf,
  patchOf: patchBodyOf,
  editedElsewhere: ['request', 'transformation'],
  problemsOf: webhookProblems,
  fieldOf: webhookFieldOf,
  general: UrlFields,
  sections: [
    { name: 'signing', title: 'Signing', fields: /^(sharedSecret|signingSecrets)/, note: signingNote, Fields: SigningFields },
    {
      name: 'headers',
      title: 'Headers',
      fields: /^headers/,
      note: ({ headers }) => (headers.length === 0 ? 'none' : `${headers.length} set`),
      Fields: HeaderFields,
    },
    {
      name: 'auth',
      title: 'Authentication',
      fields: /^auth/,
      note: authNote,
      isUsed: ({ auth }) => auth.type !== 'none',
      Fields: AuthFields,
    },
    {
      name: 'secrets',
      title: 'Secrets',
      fields: /^secrets/,
      note: secretsNote,
      isUsed: ({ secrets }) => secrets.length > 0,
      Fields: SecretsFields,
    },
    {
      name: 'tls',
      title: 'TLS',
      fields: /^tls/,
      note: tlsNote,
      isUsed: ({ tls }) => `${tls.certificate}${tls.ca}`.trim() !== '',
      Fields: TlsFields,
    },
  ],
  descriptions: {
    maxInFlight: '1 to 1,000 requests in flight at the same time. Of emails, at most 20.',
    batchSize: '1 to 1,000 messages per request. If above 1, the body is a JSON array.',
    timeout: '100 ms to 5 s for an attempt, including the full response.',
  },
}
