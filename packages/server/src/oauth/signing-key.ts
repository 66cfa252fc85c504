// The key that the service signs access tokens with. It is generated at first use, stored encrypted, and shared by all nodes of
// the store. Nobody else needs the public key, because only the service reads its tokens.

import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { Store } from '../store/store.ts'

export const SIGNING_ALGORITHM = 'EdDSA'

export interface SigningKey {
  id: string
  privateKey: KeyObject
  publicKey: KeyObject
}

/** Returns a function that loads the key once and caches it. A failure is not cached, because the store may be available the next time. */
export function createSigningKey({ secrets }: Pick<Store, 'secrets'>): () => Promise<SigningKey> {
  let opening: Promise<SigningKey> | undefined
  return () => {
    opening ??= secrets.getOrCreate('oauth_signing_key', generateKey()).then(keyFrom)
    opening.catch(() => {
      opening = undefined
    })
    return opening
  }
}

function generateKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

function keyFrom(pem: string): SigningKey {
  const privateKey = createPrivateKey(pem)
  const publicKey = createPublicKey(privateKey)
  const id = createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url')
    .slice(0, 16)
  return { id, privateKey, publicKey }
}
