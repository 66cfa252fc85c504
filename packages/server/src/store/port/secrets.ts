// The parts of the store's port that OAuth 2.0 and stored secrets need. A secret is encrypted wherever it is stored, and
// what the port gives and takes is plain: how it is encrypted, and that it is, is the adapter's promise.

import type { SecretBox } from '../../secrets/secret-box.ts'
import type { Audit } from './audit.ts'

export interface UsedAssertion {
  appId: string
  jti: string
  /** From then on it is refused for its age, and need not be remembered. */
  keepUntilMs: number
}

export interface OAuthStore {
  /** True for the first who uses it, and only after that is durable; false for everybody after, at the same moment too. */
  useAssertion(assertion: UsedAssertion, nowMs: number): Promise<boolean>
}

/**
 * The secrets that the service makes for itself. `letsIn`: with a copy of the store and its key, somebody can use this secret
 * to forge a session or an access token, or to send messages. `rotate-key --end-tokens` removes these.
 */
export const STORED_SECRETS = {
  /** Signs sessions of the dashboard. */
  session_key: { letsIn: true },
  /** Signs access tokens. */
  oauth_signing_key: { letsIn: true },
  /** The write key that the first start gives to the first source. */
  first_write_key: { letsIn: true },
  /** A hash of 256 random bits: it cannot be turned back into the token, and without session_key no session is made from it. */
  admin_token_hash: { letsIn: false },
  /** Names users in the audit log. */
  pseudonym_key: { letsIn: false },
} as const

export type StoredSecret = keyof typeof STORED_SECRETS

export interface SecretStore {
  /** The secret of this name. The first who asks stores `fresh`; all who ask at the same moment get the same. */
  keep(name: StoredSecret, fresh: string): Promise<string>
  /**
   * Encrypts every stored secret with another key, all in one transaction, and uses that key from then on. Gives their
   * number. Secrets of the names in `without` are removed instead, and made anew by who next asks for them.
   */
  reseal(box: SecretBox, audit?: Audit<{ secrets: number }>, without?: readonly StoredSecret[]): Promise<number>
}
