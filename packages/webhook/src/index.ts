export type { HeaderGetter, HeaderRecord, HeadersInput } from './header-values.ts'
export type { RawBody } from './raw-body.ts'
export { REFUSALS, type Refusal, type RefusalCode, type SignatureHeader } from './refusals.ts'
export type { FetchRequest, ServerRequest, WebhookRequest } from './request-shapes.ts'
export { generateSecret, MAX_SECRET_BYTES, MIN_SECRET_BYTES, parseSigningSecret } from './signing-secrets.ts'
export {
  MAX_SIGNING_SECRETS,
  type StandardWebhook,
  type StandardWebhookHeaders,
  signStandardWebhook,
  standardWebhookSigner,
} from './standard-webhooks.ts'
export { verify } from './verify.ts'
export type { VerifyOptions } from './verify-options.ts'
export { type RawWebhook, type VerifiedWebhook, type VerifyResult, verifyWebhook, type WebhookMessage } from './verify-webhook.ts'
export { signBody, signMessage, verifySignature } from './x-signature.ts'
