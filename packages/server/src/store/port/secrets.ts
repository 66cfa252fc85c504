// The parts of the store's port for OAuth 2.0 and for stored secrets. Secrets are plain text in the port. The adapter must encrypt them
// wherever it stores them.

import type { SecretBox } from '../../secrets/secret-box.ts'
import type { Audit } from './audit.ts'

export interface UsedAssertion {
  appId: string
  jti: string
  /** After this time, the assertion is rejected because of its age and need not be stored any more. */
  keepUntilMs: number
}

export interface OAuthStore {
  /** Returns true for the first use of an assertion, after that use is durable, and false for every other use, also for concurrent ones. */
  useAssertion(assertion: UsedAssertion, nowMs: number): Promise<boolean>
}

/**
 * The secrets that the service creates for itself. `grantsAccess`: whoever has a copy of the store and its key can use this secret to
 * forge a session or an access token, or to send messages. `rotate-key --end-tokens` removes these secrets.
 */
export const STORED_SECRETS = {
  /** Signs dashboard sessions. */
  session_key: { grantsAccess: true },
  /** Encrypts what the service keeps of people: the grants with which their identity provider is asked again, and logins in progress. */
  person_key: { grantsAccess: true },
  /** Signs access tokens. */
  oauth_signing_key: { grantsAccess: true },
  /** The write key of the source that is created at the first start. */
  first_write_key: { grantsAccess: true },
  /** A hash of 256 random bits. The token cannot be computed from it, and no session can be forged with it without session_key. */
  admin_token_hash: { grantsAccess: false },
  /** The key of the pseudonyms of users in the audit log. */
  pseudonym_key: { grantsAccess: false },
  /** The keys with which sources hash values are derived from it. */
  privacy_key: { grantsAccess: false },
  /** The name under which this installation owns the tables of its warehouses. */
  warehouse_installation: { grantsAccess: false },
} as const

export type StoredSecret = keyof typeof STORED_SECRETS

export interface SecretStore {
  /** Returns the secret of this name. If there is none, stores and returns `fresh`. Concurrent calls all return the same secret. */
  getOrCreate(name: StoredSecret, fresh: string): Promise<string>
  /**
   * Encrypts every stored secret with another key, in one transaction, and uses that key from then on. Returns the number of secrets. Secrets
   * whose names are in `remove` are deleted instead; the next call of `getOrCreate` creates new ones.
   */
  rotateKey(box: SecretBox, audit?: Audit<{ secrets: number }>, remove?: readonly StoredSecret[]): Promise<number>
}
